"""Rows of a few worlds of a pytree of arrays (n, ...): which they are, to take them, and to put others in their place.

On a CPU these are custom calls, where they exist: XLA makes a scatter of each array, and a dozen operations to find the
worlds. All forms have the same bits.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from simengine.xla import host_calls
from simengine_envs.written import for_chain, for_processor


def first_rows(mask: jax.Array, most: int) -> tuple[jax.Array, jax.Array]:
    """Numbers (most,) of the first worlds of a mask (n,), n where there is none, and the mask without them."""
    if _by_calls():
        return host_calls.first_rows(mask, most)
    chosen = jnp.nonzero(mask, size=most, fill_value=len(mask))[0]
    return chosen, mask.at[chosen].set(False, mode="drop")


def take_rows(tree: Any, chosen: jax.Array) -> Any:
    """Arrays (k, ...) of the rows of some worlds (k,); of numbers that are no world, any row."""
    if not _by_calls():
        return jax.tree.map(lambda x: x.at[chosen].get(mode="clip"), tree)
    leaves, structure = jax.tree.flatten(tree)
    taken = host_calls.take_rows(chosen, [_words(x) for x in leaves])
    return jax.tree.unflatten(structure, [_like(x, old) for x, old in zip(taken, leaves, strict=True)])


def repeated(tree: Any, count: int) -> Any:
    """Arrays (count, ...) with the one row of arrays (1, ...) in every place."""
    if _by_calls():
        return take_rows(tree, jnp.zeros(count, jnp.int32))
    return jax.tree.map(lambda x: jnp.broadcast_to(x, (count, *x.shape[1:])), tree)


def put_rows(tree: Any, chosen: jax.Array, rows: Any) -> Any:
    """Arrays (n, ...) with other rows (k, ...) of some worlds (k,). Numbers that are no world are left out."""
    if not _by_calls():
        return jax.tree.map(lambda old, new: old.at[chosen].set(new, mode="drop"), tree, rows)
    leaves, structure = jax.tree.flatten(tree)
    new = [_words(x).astype(_words(old).dtype) for x, old in zip(jax.tree.leaves(rows), leaves, strict=True)]
    put = host_calls.put_rows([_words(x) for x in leaves], chosen, new)
    return jax.tree.unflatten(structure, [_like(x, old) for x, old in zip(put, leaves, strict=True)])


def _by_calls() -> bool:
    return for_processor() and host_calls.calls_exist() and not for_chain()


def _words(array: jax.Array) -> jax.Array:
    """An array whose random keys are numbers."""
    return jax.random.key_data(array) if jnp.issubdtype(array.dtype, jax.dtypes.prng_key) else array


def _like(words: jax.Array, array: jax.Array) -> jax.Array:
    """Numbers as random keys, if another array has such."""
    if jnp.issubdtype(array.dtype, jax.dtypes.prng_key):
        return jax.random.wrap_key_data(words, impl=jax.random.key_impl(array))
    return words
