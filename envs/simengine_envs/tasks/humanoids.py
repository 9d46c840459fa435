"""What Humanoid and HumanoidStandup have in common: the model, the start and the observation."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp

from simengine_envs.draw import Draw
from simengine_envs.snapshot import Snapshot
from simengine_envs.sums import squares_of_each
from simengine_envs.task import Array, Task, Values
from simengine_envs.tasks.locomotion import check_noise, noisy_start

if TYPE_CHECKING:
    from simengine import Model

_ROOT_DOFS = 6


class HumanoidTask(Task):
    """A task of a model whose first joint is free.

    Attributes:
        frame_skip: engine steps in one environment step.
        reset_noise_scale: half width of the uniform noise at the start.
        exclude_current_positions_from_observation: leave out x and y of the torso.
        include_cinert_in_observation: observe `cinert` of all bodies except the world body.
        include_cvel_in_observation: observe `cvel` of these bodies.
        include_qfrc_actuator_in_observation: observe `qfrc_actuator` of all dofs but those of the free joint.
        include_cfrc_ext_in_observation: observe `cfrc_ext` of these bodies.
    """

    frame_skip: int = 5
    reset_noise_scale: float = 1e-2
    exclude_current_positions_from_observation: bool = True
    include_cinert_in_observation: bool = True
    include_cvel_in_observation: bool = True
    include_qfrc_actuator_in_observation: bool = True
    include_cfrc_ext_in_observation: bool = True

    def __post_init__(self) -> None:
        """Check the arguments. Raises ValueError."""
        super().__post_init__()
        check_noise(self)

    @property
    @abstractmethod
    def _impact_weight(self) -> float:
        """Weight of the sum of squares of `cfrc_ext` in the reward."""

    @property
    def derived(self) -> tuple[str, ...]:
        """The tendons, and what the observation and the reward need."""
        needed = {
            "cinert": self.include_cinert_in_observation,
            "cvel": self.include_cvel_in_observation,
            "qfrc_actuator": self.include_qfrc_actuator_in_observation,
            "cfrc_ext": self.include_cfrc_ext_in_observation or self._impact_weight != 0,
        }
        return ("ten_length", "ten_velocity", *(name for name, read in needed.items() if read))

    def observation_structure(self, model: Model) -> dict[str, int]:
        """Sizes of the parts of the observation, in its order."""
        skipped, bodies = 2 * self.exclude_current_positions_from_observation, model.nbody - 1
        return {
            "skipped_qpos": skipped,
            "qpos": model.nq - skipped,
            "qvel": model.nv,
            "cinert": 10 * bodies * self.include_cinert_in_observation,
            "cvel": 6 * bodies * self.include_cvel_in_observation,
            "qfrc_actuator": (model.nv - _ROOT_DOFS) * self.include_qfrc_actuator_in_observation,
            "cfrc_ext": 6 * bodies * self.include_cfrc_ext_in_observation,
            "ten_length": 0,
            "ten_velocity": 0,
        }

    def start(self, model: Model, draw: Draw, last: Values | None) -> Mapping[str, Any]:
        """Uniform noise on `qpos` and `qvel`, in +-`reset_noise_scale`."""
        return noisy_start(model, draw, self.reset_noise_scale, normal_velocities=False)

    def observation(self, now: Snapshot, draw: Draw) -> Array:
        """Coordinates, velocities, inertias, com velocities, actuator forces and contact forces, (n, size)."""
        parts = [now.qpos[:, 2 * self.exclude_current_positions_from_observation :], now.qvel]
        if self.include_cinert_in_observation:
            parts.append(_of_bodies(now.cinert))
        if self.include_cvel_in_observation:
            parts.append(_of_bodies(now.cvel))
        if self.include_qfrc_actuator_in_observation:
            parts.append(now.qfrc_actuator[:, _ROOT_DOFS:])
        if self.include_cfrc_ext_in_observation:
            parts.append(_of_bodies(now.cfrc_ext))
        return jnp.concatenate(parts, axis=1)

    def _impact(self, now: Snapshot, limits: tuple[float, float]) -> Array:
        """The weighted sum of squares of `cfrc_ext`, clipped, (n,)."""
        total = jnp.zeros_like(now.qpos[:, 0])
        if self._impact_weight != 0:
            total = self._impact_weight * squares_of_each(now.cfrc_ext)
        return jnp.clip(total, *limits)

    def info(self, now: Snapshot) -> Mapping[str, Array]:
        """Position of the torso in the plane, each (n,) [m], and the tendons, each (n, ntendon)."""
        return {
            "x_position": now.qpos[:, 0],
            "y_position": now.qpos[:, 1],
            "tendon_length": now.ten_length,
            "tendon_velocity": now.ten_velocity,
        }


def _of_bodies(values: Array) -> Array:
    """Entries of all bodies except the world body, (n, nbody, k), in one row for each world."""
    return values[:, 1:].reshape(len(values), -1)
