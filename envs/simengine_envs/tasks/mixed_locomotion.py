"""MixedLocomotion: robots with different bodies learn to run along +x under one policy."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import jax.numpy as jnp
import mujoco
import numpy as np

from simengine.zoo import random_robot
from simengine_envs.draw import Draw
from simengine_envs.mixed_task import MixedTask
from simengine_envs.models import model_of
from simengine_envs.snapshot import Snapshot
from simengine_envs.sums import squares_of_each
from simengine_envs.task import Array, Values
from simengine_envs.tasks.locomotion import check_noise, finite_state

if TYPE_CHECKING:
    from simengine import Model

ROBOTS = ("ant", "half_cheetah", "quadruped", "random:0", "random:1")
RANDOM = "random:"
_TORSO = 1  # the first body after the world
_ABOUT_TORSO = 10  # entries about the torso


def robot_model(name: str) -> Model:
    """The model of a robot: "random:" and a seed for one of `simengine.zoo.random_robot`, else a name, path or MJCF.

    Raises:
        ValueError: the seed is no integer.
        FileNotFoundError: there is no such model.
    """
    if not name.startswith(RANDOM):
        return model_of(name)
    seed = name.removeprefix(RANDOM)
    if not seed.isdigit():
        raise ValueError(f"robot {name!r} has no seed; write it as in {RANDOM}0")
    return model_of(_random_xml(int(seed)))


@lru_cache(maxsize=32)
def _random_xml(seed: int) -> str:
    return random_robot(seed)


class _Parts(NamedTuple):
    """What the task looks up in a model once: ids of the actuated joints, the home pose, and the controls' range."""

    qposadr: np.ndarray
    dofadr: np.ndarray
    home: np.ndarray
    middle: np.ndarray
    half: np.ndarray


class MixedLocomotion(MixedTask):
    """Robots with different bodies that are to run along +x. One policy sees all of them through the same layout.

    With m the most actuators of a robot and r the number of robots:

    **Action**, `Box(-1, 1, (m,), float32)`: controls in units of half their range, from its middle. A robot with fewer
    actuators uses the first entries.

    **Observation**, `Box(-inf, inf, (10 + 4 m + r,))`:

    | part             | size | meaning                                                      |
    | ---------------- | ---- | ------------------------------------------------------------ |
    | height           | 1    | of the torso [m]                                             |
    | up               | 3    | the world's upward direction in the torso's frame            |
    | linear_velocity  | 3    | of the torso, in its frame [m/s]                             |
    | angular_velocity | 3    | of the torso, in its frame [rad/s]                           |
    | joint_angles     | m    | of the actuated joints, from the home pose [rad]             |
    | joint_velocities | m    | [rad/s], times 0.1                                           |
    | last_action      | m    |                                                              |
    | joint_mask       | m    | 1 for actuators that the robot has, 0 for padding            |
    | robot            | r    | 1 at the index of the robot, else 0                          |

    **Reward**: the sum of these terms, each times its entry in `weights`.

    | term    | weight | value                                                             |
    | ------- | ------ | ----------------------------------------------------------------- |
    | forward | 1      | velocity of the torso along x [m/s], at most 3                    |
    | alive   | 0.5    | 1                                                                 |
    | control | -0.1   | mean of the squares of the actions of the robot's own actuators   |

    **Start**: the keyframe `home`, or the reference pose, with noise. **End**: the torso is upside down. `info` has
    `robot` (its index), `num_actuators`, and `x_position` [m].

    Attributes:
        robots: names or paths of models, or "random:" and a seed. Each has a torso as its first body.
        robot: as for `MixedTask`.
        frame_skip: engine steps in one environment step; 0 for as many as last `period`.
        period: duration of an environment step of each robot [s].
        reset_noise_scale: half width of the noise of coordinates and velocities at the start.
    """

    xml_file: str = ""  # `robot` names the model
    frame_skip: int = 0
    weights: Mapping[str, float] = {"alive": 0.5, "control": -0.1}
    default_camera_config: Mapping[str, Any] = {"distance": 2.5}
    robots: tuple[str, ...] = ROBOTS
    period: float = 0.04
    reset_noise_scale: float = 0.05
    by_period: bool = field(default=False, init=False, repr=False)
    parts: Any = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        """Check the arguments. Raises ValueError."""
        self.check_robots()
        if not self.frame_skip:
            timestep = float(self.load().opt.timestep)
            object.__setattr__(self, "frame_skip", max(1, round(self.period / timestep)))
            object.__setattr__(self, "by_period", True)
        super().__post_init__()
        check_noise(self)

    def members(self) -> tuple[Self, ...]:
        """The task for each robot, with engine steps of its own if `period` says how many."""
        if not self.by_period:
            return super().members()
        return tuple(replace(member, frame_skip=0) for member in super().members())

    @property
    def _name(self) -> str:
        return self.robot or (self.robots[0] if self.robots else "")

    def load(self) -> Model:
        """The model of the robot. Raises as `robot_model`."""
        return robot_model(self._name)

    @property
    def _most(self) -> int:
        """Most actuators of a robot."""
        return max(robot_model(name).nu for name in self.robots)

    def resolve(self, model: Model) -> Self:
        """Look up the actuated joints and the home pose."""
        found, mj = copy(self), model.mj
        joints = mj.actuator_trnid[:, 0]
        driven = np.isin(mj.actuator_trntype, (mujoco.mjtTrn.mjTRN_JOINT, mujoco.mjtTrn.mjTRN_JOINTINPARENT))
        if not driven.all() or not np.isin(mj.jnt_type[joints], (2, 3)).all():
            raise ValueError(f"robot {self._name!r} has an actuator that drives no hinge or slide joint; use motors")
        low, high = mj.actuator_ctrlrange.T
        home = mj.key("home").qpos.copy() if mj.nkey and mj.key(0).name == "home" else mj.qpos0.copy()
        parts = _Parts(mj.jnt_qposadr[joints], mj.jnt_dofadr[joints], home, (low + high) / 2, (high - low) / 2)
        object.__setattr__(found, "parts", parts)
        return found

    def masks(self) -> tuple[np.ndarray, np.ndarray]:
        """Entries of observations and actions that the robot has."""
        used = np.arange(self._most) < self.load().nu
        about = [np.ones(_ABOUT_TORSO, bool), used, used, used]
        return np.concatenate([*about, np.ones(self._most + len(self.robots), bool)]), used

    @property
    def derived(self) -> tuple[str, ...]:
        """Fields that the functions read."""
        return ("cvel", "subtree_com", "xmat", "xpos")

    def start(self, model: Model, draw: Draw, last: Values | None) -> Mapping[str, Any]:
        """The home pose with uniform noise of coordinates and velocities."""
        scale = self.reset_noise_scale
        return {
            "qpos": jnp.asarray(self.parts.home) + draw.uniform((model.nq,), -scale, scale),
            "qvel": draw.uniform((model.nv,), -scale, scale),
        }

    def action_range(self, model: Model) -> tuple[np.ndarray, np.ndarray]:
        """-1 and 1 for each actuator of the largest robot."""
        return -np.ones(self._most), np.ones(self._most)

    def control(self, now: Snapshot, action: Array) -> Array:
        """Controls of the robot's own actuators, (n, nu)."""
        own = jnp.clip(action[:, : len(self.parts.half)], -1, 1)
        return self.parts.middle + self.parts.half * own

    def _velocity(self, now: Snapshot) -> Array:
        """Velocity of the torso, world frame, (n, 3) [m/s]; `cvel` is that of the point at the robot's com."""
        arm = now.xpos[:, _TORSO] - now.subtree_com[:, _TORSO]
        return now.cvel[:, _TORSO, 3:] + jnp.cross(now.cvel[:, _TORSO, :3], arm)

    def rewards(self, before: Snapshot, now: Snapshot) -> Mapping[str, Array]:
        """The terms of the table above."""
        speed = self._velocity(now)[:, 0]
        own = now.action[:, : len(self.parts.half)]
        return {
            "forward": jnp.minimum(speed, 3.0),
            "alive": jnp.ones_like(speed),
            "control": squares_of_each(own) / own.shape[1],
        }

    def terminated(self, before: Snapshot, now: Snapshot) -> Array:
        """Whether the torso is upside down, (n,)."""
        return (now.xmat[:, _TORSO, 8] < 0) | ~finite_state(now)

    def observation(self, now: Snapshot, draw: Draw) -> Array:
        """The parts of the table above."""
        frame = now.xmat[:, _TORSO].reshape(-1, 3, 3)
        inside = [jnp.einsum("nij,ni->nj", frame, v) for v in (self._velocity(now), now.cvel[:, _TORSO, :3])]
        angles = now.qpos[:, self.parts.qposadr] - self.parts.home[self.parts.qposadr]
        count, own = len(angles), len(self.parts.half)
        padding = ((0, 0), (0, self._most - own))
        joints = [jnp.pad(x, padding) for x in (angles, 0.1 * now.qvel[:, self.parts.dofadr], now.action[:, :own])]
        which = np.arange(len(self.robots)) == self.robots.index(self._name)
        fixed = np.concatenate([np.arange(self._most) < own, which]).astype(now.qpos.dtype)
        return jnp.concatenate(
            [now.xpos[:, _TORSO, 2:], frame[:, 2], *inside, *joints, jnp.tile(fixed, (count, 1))], axis=1
        )

    def observation_structure(self, model: Model) -> dict[str, int]:
        """Sizes of the parts of the observation."""
        torso = {"height": 1, "up": 3, "linear_velocity": 3, "angular_velocity": 3}
        joints = dict.fromkeys(("joint_angles", "joint_velocities", "last_action", "joint_mask"), self._most)
        return {**torso, **joints, "robot": len(self.robots)}

    def info(self, now: Snapshot) -> Mapping[str, Array]:
        """Index of the robot, its number of actuators, and its position along x."""
        count = len(now.qpos)
        index = jnp.full(count, self.robots.index(self._name))
        return {
            "robot": index,
            "num_actuators": jnp.full(count, len(self.parts.half)),
            "x_position": now.xpos[:, _TORSO, 0],
        }
