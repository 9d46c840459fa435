"""`Draw`: random numbers of worlds that depend on nothing but seed, world, episode, step and draw."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import jax
import jax.numpy as jnp

from simengine_envs.threefry import bits_keys, fused

Shape = tuple[int, ...]


class Purpose(IntEnum):
    """What numbers of a step are drawn for. Each purpose has a sequence of its own."""

    START = 0
    EVENT = 1
    MEMORY = 2
    OBSERVATION = 3


class Draw:
    """Random numbers of n worlds.

    Each call gives new numbers. They are counter-based (Threefry): a world's numbers do not depend on other worlds, on
    their number, or on the device.

    Args:
        keys: (n,) JAX keys of the worlds' episodes.
        length: (n,) int32, environment steps of the episodes so far.
        purpose: what the numbers are for.
        dtype: type of real numbers.

    Attributes:
        num_worlds: n.
    """

    def __init__(self, keys: jax.Array, length: jax.Array, purpose: Purpose, dtype: Any):
        self._keys = jax.vmap(jax.random.fold_in)(fused(keys), length * len(Purpose) + int(purpose))
        self._dtype = dtype
        self._count = 0
        self.num_worlds = keys.shape[0]

    def _next(self) -> jax.Array:
        """Keys (n,) of the next numbers, which give random bits only."""
        self._count += 1
        return bits_keys(self._keys, self._count)

    def uniform(self, shape: Shape = (), low: Any = 0.0, high: Any = 1.0) -> jax.Array:
        """Numbers in [low, high), of shape (n,) + shape."""
        unit = jax.vmap(lambda key: jax.random.uniform(key, shape, self._dtype))(self._next())
        low, high = (jnp.asarray(bound, self._dtype) for bound in (low, high))
        return low + unit * (high - low)

    def normal(self, shape: Shape = (), scale: Any = 1.0) -> jax.Array:
        """Normal numbers with mean 0 and standard deviation `scale`, of shape (n,) + shape."""
        unit = jax.vmap(lambda key: jax.random.normal(key, shape, self._dtype))(self._next())
        return unit * jnp.asarray(scale, self._dtype)

    def integers(self, shape: Shape = (), low: int = 0, high: int = 2) -> jax.Array:
        """Integers in [low, high), int32 of shape (n,) + shape."""
        self._count += 1
        count = self._count
        keys = jax.vmap(lambda key: jax.random.fold_in(key, count))(self._keys)
        return jax.vmap(lambda key: jax.random.randint(key, shape, low, high))(keys)

    def chance(self, probability: Any) -> jax.Array:
        """Whether an event of this probability happens, (n,) bool."""
        return self.uniform() < jnp.asarray(probability, self._dtype)


def keys_of(seeds: jax.Array) -> jax.Array:
    """JAX keys (n,) of worlds with seeds (n,)."""
    return jax.vmap(jax.random.key)(seeds)


def of_episodes(keys: jax.Array, episodes: jax.Array) -> jax.Array:
    """Keys (n,) of episodes (n,) of worlds with these keys."""
    return jax.vmap(jax.random.fold_in)(fused(keys), episodes)
