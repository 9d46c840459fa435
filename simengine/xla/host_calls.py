"""Custom calls on a CPU for what XLA's loops do one number after another there, or one array after another; see
`calls_host.cpp` and `rows_host.cpp`.

Random numbers are those of JAX's Threefry generator.
"""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from simengine.xla.library import (
    FIRST_ROWS,
    FOLD_IN,
    JOIN,
    PUT_ROWS,
    RANDOM_BITS,
    SUM_OF_ARRAYS,
    SUM_OF_LAST,
    TAKE_ROWS,
    handlers,
)


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


def sum_of_arrays(arrays: Sequence[jax.Array]) -> jax.Array:
    """The sum of arrays of one shape and type, float32 or float64, each added to those before it."""
    kind = jax.ShapeDtypeStruct(arrays[0].shape, arrays[0].dtype)
    return jax.ffi.ffi_call(SUM_OF_ARRAYS, kind, vmap_method="broadcast_all")(*arrays)


def first_rows(mask: jax.Array, most: int) -> tuple[jax.Array, jax.Array]:
    """Numbers (most,) int32 of the first entries of a mask (n,), n where there is none, and the mask without them."""
    kinds = [jax.ShapeDtypeStruct((most,), jnp.int32), jax.ShapeDtypeStruct(mask.shape, mask.dtype)]
    chosen, left = jax.ffi.ffi_call(FIRST_ROWS, kinds, vmap_method="sequential")(mask)
    return chosen, left


def take_rows(chosen: jax.Array, arrays: Sequence[jax.Array]) -> list[jax.Array]:
    """Rows (k, ...) of arrays (n, ...) with numbers (k,) int32; the last row for numbers that are too large."""
    kinds = [jax.ShapeDtypeStruct((*chosen.shape, *array.shape[1:]), array.dtype) for array in arrays]
    return list(jax.ffi.ffi_call(TAKE_ROWS, kinds, vmap_method="sequential")(chosen, *arrays))


def put_rows(arrays: Sequence[jax.Array], chosen: jax.Array, rows: Sequence[jax.Array]) -> list[jax.Array]:
    """Arrays (n, ...) with other rows (k, ...) at numbers (k,) int32, but for numbers that are too large."""
    kinds = [jax.ShapeDtypeStruct(array.shape, array.dtype) for array in arrays]
    places = {1 + len(arrays) + i: i for i in range(len(arrays))}
    call = jax.ffi.ffi_call(PUT_ROWS, kinds, vmap_method="sequential", input_output_aliases=places)
    return list(call(chosen, *rows, *arrays))
