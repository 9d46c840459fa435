"""`folded`: a custom call as a function of JAX, in which the worlds of a `vmap` are more worlds of one call."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from simengine.xla.calls import AnyCall
from simengine.xla.library import TARGET


def folded(call: AnyCall, of_worlds: Callable[[int], AnyCall]) -> Callable[..., list[jax.Array]]:
    """A custom call as a function of its arguments (n, ...), which gives its results (n, ...) as a list.

    Args:
        call: the call.
        of_worlds: gives the same call for another number of worlds.
    """

    @jax.custom_batching.custom_vmap
    def run(*arrays: jax.Array) -> list[jax.Array]:
        entries = [call.entry(name) for name in (*call.outputs, *call.keep)]
        shapes = [jax.ShapeDtypeStruct((call.num_worlds, *entry), jnp.dtype(kind)) for entry, kind in entries]
        return list(jax.ffi.ffi_call(TARGET, shapes)(*arrays, kind=np.int64(call.number)))

    @run.def_vmap
    def _(size: int, batched: list[bool], *arrays: jax.Array) -> tuple[list[jax.Array], list[bool]]:
        every = [a if own else jnp.broadcast_to(a, (size, *a.shape)) for a, own in zip(arrays, batched, strict=True)]
        joined = [a.reshape(size * call.num_worlds, *a.shape[2:]) for a in every]
        results = folded(of_worlds(size * call.num_worlds), of_worlds)(*joined)
        return [r.reshape(size, call.num_worlds, *r.shape[1:]) for r in results], [True] * len(results)

    return run
