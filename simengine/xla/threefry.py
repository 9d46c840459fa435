"""JAX's Threefry generator as custom calls on a CPU, with the same numbers; see `threefry_host.cpp`."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from simengine.xla.library import FOLD_IN, RANDOM_BITS, handlers


def calls_exist() -> bool:
    """Whether the calls can be made here: a C++ compiler has made their handlers."""
    return hasattr(handlers("cpu"), RANDOM_BITS)


def random_bits(key: jax.Array, shape: tuple[int, ...], wide: bool) -> jax.Array:
    """The first numbers of a key (2,) uint32, as an array of a shape, uint64 if `wide` and else uint32."""
    kind = jnp.uint64 if wide else jnp.uint32
    return jax.ffi.ffi_call(RANDOM_BITS, jax.ShapeDtypeStruct(shape, kind), vmap_method="broadcast_all")(key)


def fold_in(key: jax.Array, word: jax.Array) -> jax.Array:
    """The key (2,) uint32 that follows from a key (2,) and a word () uint32."""
    return jax.ffi.ffi_call(FOLD_IN, jax.ShapeDtypeStruct((2,), jnp.uint32), vmap_method="broadcast_all")(key, word)
