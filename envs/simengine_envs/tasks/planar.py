"""What the robots that run along +x in a vertical plane have in common: HalfCheetah, Hopper and Walker2d."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import jax.numpy as jnp

from simengine_envs.draw import Draw
from simengine_envs.snapshot import Snapshot
from simengine_envs.task import Array, Task, Values
from simengine_envs.tasks.locomotion import check_noise, check_range, noisy_start, squared_action, strictly_within

if TYPE_CHECKING:
    from simengine import Model


class PlanarRunner(Task):
    """A robot whose first three coordinates are x, z and the pitch of its torso, and that is rewarded for speed.

    Attributes:
        forward_reward_weight: weight of the mean x velocity over a step.
        ctrl_cost_weight: weight of the sum of squares of the action.
        reset_noise_scale: size of the noise at the start.
        exclude_current_positions_from_observation: leave out x.
    """

    forward_reward_weight: float = 1.0
    ctrl_cost_weight: float = 1e-3
    reset_noise_scale: float = 5e-3
    exclude_current_positions_from_observation: bool = True

    def __post_init__(self) -> None:
        """Check the arguments. Raises ValueError."""
        super().__post_init__()
        check_noise(self)

    def observation_structure(self, model: Model) -> dict[str, int]:
        """Sizes of the parts of the observation."""
        skipped = int(self.exclude_current_positions_from_observation)
        return {"skipped_qpos": skipped, "qpos": model.nq - skipped, "qvel": model.nv}

    def start(self, model: Model, draw: Draw, last: Values | None) -> Mapping[str, Any]:
        """Uniform noise on `qpos` and `qvel`, in +-`reset_noise_scale`."""
        return noisy_start(model, draw, self.reset_noise_scale, normal_velocities=False)

    def observation(self, now: Snapshot, draw: Draw) -> Array:
        """Coordinates and velocities, (n, nq + nv), less one without x."""
        return jnp.concatenate([now.qpos[:, int(self.exclude_current_positions_from_observation) :], now.qvel], axis=1)

    def _velocity(self, before: Snapshot, now: Snapshot) -> Array:
        return (now.qpos[:, 0] - before.qpos[:, 0]) / now.dt

    def rewards(self, before: Snapshot, now: Snapshot) -> Mapping[str, Array]:
        """Terms `forward` and `ctrl`, each (n,)."""
        return {
            "forward": self.forward_reward_weight * self._velocity(before, now),
            "ctrl": -self.ctrl_cost_weight * squared_action(now),
        }

    def info(self, now: Snapshot) -> Mapping[str, Array]:
        """The coordinate x, (n,) [m]."""
        return {"x_position": now.qpos[:, 0]}

    def step_info(self, before: Snapshot, now: Snapshot) -> Mapping[str, Array]:
        """Mean x velocity over the step, (n,) [m/s]."""
        return {"x_velocity": self._velocity(before, now)}


class PlanarWalker(PlanarRunner):
    """A planar robot that stands on legs and can fall.

    Attributes:
        healthy_reward: reward of a step if the robot is healthy.
        terminate_when_unhealthy: end the episode of an unhealthy robot.
        healthy_z_range: healthy heights z of the torso, ends excluded [m].
        healthy_angle_range: healthy pitches of the torso, ends excluded [rad].
    """

    healthy_reward: float = 1.0
    terminate_when_unhealthy: bool = True
    healthy_z_range: tuple[float, float] = (0.0, float("inf"))
    healthy_angle_range: tuple[float, float] = (-1.0, 1.0)

    _most_observed_speed: ClassVar[float] = 10.0

    def __post_init__(self) -> None:
        """Check the arguments. Raises ValueError."""
        super().__post_init__()
        check_range(self, "healthy_z_range", "healthy_angle_range")

    def observation(self, now: Snapshot, draw: Draw) -> Array:
        """Coordinates, and velocities clipped to [-10, 10], (n, nq + nv), less one without x."""
        positions = now.qpos[:, int(self.exclude_current_positions_from_observation) :]
        most = self._most_observed_speed
        return jnp.concatenate([positions, jnp.clip(now.qvel, -most, most)], axis=1)

    def _healthy(self, now: Snapshot) -> Array:
        upright = strictly_within(now.qpos[:, 2], self.healthy_angle_range)
        return now.finite & upright & strictly_within(now.qpos[:, 1], self.healthy_z_range)

    def rewards(self, before: Snapshot, now: Snapshot) -> Mapping[str, Array]:
        """Terms `forward`, `ctrl` and `survive`, each (n,)."""
        alive = self.healthy_reward * self._healthy(now).astype(now.qpos.dtype)
        return {**super().rewards(before, now), "survive": alive}

    def terminated(self, before: Snapshot, now: Snapshot) -> Array:
        """Whether the robot is unhealthy, if that ends episodes, (n,)."""
        return ~self._healthy(now) & self.terminate_when_unhealthy

    def info(self, now: Snapshot) -> Mapping[str, Array]:
        """The coordinate x, and how far z is from where it is in `qpos0`, each (n,) [m]."""
        return {**super().info(now), "z_distance_from_origin": now.qpos[:, 1] - now.model.mj.qpos0[1]}
