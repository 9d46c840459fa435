"""Custom calls on a CPU for what XLA's loops do one number after another there; see `calls_host.cpp`.

Random numbers are those of JAX's Threefry generator.
"""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from simengine.xla.library import FOLD_IN, JOIN, RANDOM_BITS, SUM_OF_LAST, handlers


def calls_exist() -> bool:
    """Whether the calls can be made here: a C++ compiler has made their handlers."""
    return hasattr(handlers("cpu"), RANDOM_BITS)


def random_bits(key: jax.Array, shape: tuple[int, ...], wide: bool, word: int | None = None) -> jax.Array:
    """The first numbers of a key (2,) uint32, as an array of a shape, uint64 if `wide` and else uint32.

    With a word, they are those of the key that follows from the key and the word.
    """
    kind = jax.ShapeDtypeStruct(shape, jnp.uint64 if wide else jnp.uint32)
    attribute = np.int64(-1 if word is None else word)
    return jax.ffi.ffi_call(RANDOM_BITS, kind, vmap_method="broadcast_all")(key, word=attribute)


def fold_in(key: jax.Array, word: jax.Array) -> jax.Array:
    """The key (2,) uint32 that follows from a key (2,) and a word () uint32."""
    return jax.ffi.ffi_call(FOLD_IN, jax.ShapeDtypeStruct((2,), jnp.uint32), vmap_method="broadcast_all")(key, word)


def joined(parts: Sequence[jax.Array]) -> jax.Array:
    """Arrays (..., k) of one type side by side along their last axis."""
    shape = (*parts[0].shape[:-1], sum(part.shape[-1] for part in parts))
    kind = jax.ShapeDtypeStruct(shape, parts[0].dtype)
    return jax.ffi.ffi_call(JOIN, kind, vmap_method="broadcast_all")(*parts)


def sum_of_last(values: jax.Array) -> jax.Array:
    """Sum over the last axis, which has two entries at least, in the order of `simengine_envs.sums.sum_of_last`.

    Args:
        values: (..., k) float32 or float64.
    """
    kind = jax.ShapeDtypeStruct(values.shape[:-1], values.dtype)
    return jax.ffi.ffi_call(SUM_OF_LAST, kind, vmap_method="broadcast_all")(values)
