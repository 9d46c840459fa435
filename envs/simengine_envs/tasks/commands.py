"""Velocity commands, and the level from which their size follows."""

from __future__ import annotations

import jax.numpy as jnp

from simengine_envs.draw import Draw
from simengine_envs.task import Array, Values

_STANDING_SHARE = 0.1  # of the commands, which say to stand
_STEP, _LEAST = 0.05, 0.1  # change of the level by an episode, and lowest level
_GOOD, _BAD = 0.75, 0.5  # mean tracking above which the level rises, and below which it falls
_LONG = 100  # [steps] a shorter episode does not raise the level


def new_commands(draw: Draw, level: Array, most: tuple[float, float, float]) -> Array:
    """Commands that are drawn from a part of their range, (n, 3).

    Args:
        draw: random numbers.
        level: the part, (n,) in (0, 1].
        most: greatest forward and sideways velocity [m/s] and turning rate [rad/s].
    """
    moving = ~draw.chance(_STANDING_SHARE)
    return draw.uniform((3,), -1, 1) * jnp.asarray(most) * (level * moving)[:, None]


def next_level(last: Values) -> Array:
    """The level (n,) after episodes, from their memory: "level", "tracked" (a sum over steps) and "episode_length"."""
    quality = last["tracked"] / jnp.maximum(last["episode_length"], 1)
    rises = (quality > _GOOD) & (last["episode_length"] > _LONG)
    change = jnp.where(rises, _STEP, jnp.where(quality < _BAD, -_STEP, 0.0))
    return jnp.clip(last["level"] + change, _LEAST, 1.0)
