"""JAX's Threefry generator, with the same numbers, in operations that XLA fuses with their neighbours, or in calls.

On a CPU JAX makes the rounds of a hash in a loop, which takes longer than the hash where arrays are small. Fused with
their neighbours hashes are computed one by one there, and in calls sixteen at a time.
"""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.random import define_prng_impl

from simengine.xla import host_calls
from simengine_envs.written import for_processor

NAME = "threefry2x32"
"""JAX's name of the generator."""

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA

Words = tuple[jax.Array, jax.Array]


def hashed(key: Words, counts: Words) -> Words:
    """Hash two words under a key of two words with the 20 rounds of Threefry-2x32, all uint32.

    The algorithm is that of Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011.
    """
    words = (*key, key[0] ^ key[1] ^ jnp.uint32(_PARITY))
    x, y = counts[0] + words[0], counts[1] + words[1]
    for block in range(5):
        for rotation in _ROTATIONS[block % 2]:
            x = x + y
            y = x ^ ((y << jnp.uint32(rotation)) | (y >> jnp.uint32(32 - rotation)))
        x = x + words[(block + 1) % 3]
        y = y + words[(block + 2) % 3] + jnp.uint32(block + 1)
    return x, y


def _counters(shape: tuple[int, ...]) -> Words:
    """Numbers 0, 1, ... of an array's entries, as high and low words."""
    low = jnp.arange(max(1, _size(shape)), dtype=jnp.uint32)[: _size(shape)].reshape(shape)
    return jnp.zeros_like(low), low


def _size(shape: tuple[int, ...]) -> int:
    size = 1
    for length in shape:
        size *= length
    return size


def _seeded(seed: jax.Array) -> jax.Array:
    low = seed.astype(jnp.uint32)
    high = (seed >> 32).astype(jnp.uint32) if seed.dtype.itemsize == 8 else jnp.zeros_like(low)
    return jnp.stack([high, low])


def _split(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    return jnp.stack(hashed((key[0], key[1]), _counters(shape)), axis=-1)


def _folded(key: jax.Array, data: Any) -> jax.Array:
    word = jnp.asarray(data).astype(jnp.uint32)
    return jnp.stack(hashed((key[0], key[1]), (jnp.zeros_like(word), word)))


def _bits(key: jax.Array, width: int, shape: tuple[int, ...]) -> jax.Array:
    high, low = hashed((key[0], key[1]), _counters(shape))
    if width == 64:
        return (high.astype(jnp.uint64) << jnp.uint64(32)) | low.astype(jnp.uint64)
    return (high ^ low).astype({8: jnp.uint8, 16: jnp.uint16, 32: jnp.uint32}[width])


_IMPLEMENTATION = define_prng_impl(
    key_shape=(2,), seed=_seeded, split=_split, random_bits=_bits, fold_in=_folded, name=f"{NAME}_fused", tag="fused"
)


def _called_bits(key: jax.Array, width: int, shape: tuple[int, ...], word: int | None = None) -> jax.Array:
    if not _size(shape):
        return _bits(key, width, shape)
    return host_calls.random_bits(key, shape, width == 64, word).astype(jnp.dtype(f"uint{width}"))


def _called_fold(key: jax.Array, data: Any) -> jax.Array:
    return host_calls.fold_in(key, jnp.asarray(data).astype(jnp.uint32))


_IN_CALLS = define_prng_impl(
    key_shape=(2,),
    seed=_seeded,
    split=_split,
    random_bits=_called_bits,
    fold_in=_called_fold,
    name=f"{NAME}_called",
    tag="called",
)


@cache
def _in_calls_after(word: int) -> Any:
    """The generator whose keys are folded with a word in the call that draws. They have no other use."""

    def refused(*_: Any) -> jax.Array:
        raise TypeError("this key gives random bits only; fold_in of jax.random makes one that gives keys, too")

    return define_prng_impl(
        key_shape=(2,),
        seed=refused,
        split=refused,
        random_bits=partial(_called_bits, word=word),
        fold_in=refused,
        name=f"{NAME}_called_{word}",
        tag=f"called {word}",
    )


def fused(keys: jax.Array) -> jax.Array:
    """Keys of JAX as keys that give the same numbers; those of other generators than Threefry as they are."""
    if str(jax.random.key_impl(keys)) != NAME:
        return keys
    called = for_processor() and host_calls.calls_exist()
    return jax.random.wrap_key_data(jax.random.key_data(keys), impl=_IN_CALLS if called else _IMPLEMENTATION)


def bits_keys(keys: jax.Array, number: int) -> jax.Array:
    """Keys (n,) that follow from keys (n,) and a number, as those of `jax.random.fold_in`, to draw random bits only."""
    if jax.random.key_impl(keys) == _IN_CALLS:
        return jax.random.wrap_key_data(jax.random.key_data(keys), impl=_in_calls_after(number))
    return jax.vmap(lambda key: jax.random.fold_in(key, number))(keys)


def is_ours(impl: Any) -> bool:
    """Whether keys are of a generator of this module."""
    return str(impl.name).startswith(f"{NAME}_")


def word_of(impl: Any) -> int | None:
    """The word with which keys of `bits_keys` are folded by the call that draws; None for other keys."""
    _, _, word = str(impl.name).partition(f"{NAME}_called_")
    return int(word) if word else None
