"""What Gymnasium's locomotion tasks have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp

from simengine_envs.draw import Draw
from simengine_envs.snapshot import Snapshot
from simengine_envs.sums import squares_of_each
from simengine_envs.task import Array, Task, Values

if TYPE_CHECKING:
    from simengine import Model


def check_range(task: Task, *names: str) -> None:
    """Raise ValueError if the low end of a range is above its high end."""
    for name in names:
        low, high = getattr(task, name)
        if not low <= high:
            raise ValueError(f"{type(task).__name__}: {name} must be (low, high) with low <= high, not ({low}, {high})")


def check_noise(task: Any) -> None:
    """Raise ValueError if the scale of the noise at the start is negative."""
    if not task.reset_noise_scale >= 0:
        raise ValueError(f"{type(task).__name__}: reset_noise_scale must not be negative, not {task.reset_noise_scale}")


def noisy_start(model: Model, draw: Draw, scale: float, normal_velocities: bool) -> Mapping[str, Any]:
    """The reference state with noise.

    Args:
        model: the model.
        draw: random numbers.
        scale: half width of the uniform noise.
        normal_velocities: whether the noise of the velocities is normal, with standard deviation `scale`.
    """
    moved = draw.uniform((model.nq,), -scale, scale)
    qpos = jnp.asarray(model.mj.qpos0, moved.dtype) + moved
    noise = draw.normal((model.nv,), scale) if normal_velocities else draw.uniform((model.nv,), -scale, scale)
    return {"qpos": qpos, "qvel": noise}


def finite_state(now: Snapshot) -> Array:
    """Whether coordinates and velocities are finite and the engine did not stop the world, (n,) bool."""
    return now.finite & jnp.isfinite(now.qpos).all(axis=1) & jnp.isfinite(now.qvel).all(axis=1)


def plane_position(now: Snapshot) -> Values:
    """The first two coordinates, x and y, and their distance from the origin, each (n,) [m]."""
    x, y = now.qpos[:, 0], now.qpos[:, 1]
    return {"x_position": x, "y_position": y, "distance_from_origin": jnp.sqrt(x * x + y * y)}


def squared_action(now: Snapshot) -> Array:
    """Sum of squares of the action, before the model clips it, (n,)."""
    return squares_of_each(now.action)


def within(value: Array, limits: tuple[float, float]) -> Array:
    """Whether values are within limits, ends included."""
    low, high = limits
    return (low <= value) & (value <= high)


def strictly_within(value: Array, limits: tuple[float, float]) -> Array:
    """Whether values are within limits, ends excluded."""
    low, high = limits
    return (low < value) & (value < high)
