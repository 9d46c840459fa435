"""PickUp: a hand on a gantry learns to take up a box and to carry it to a goal in the air."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import field
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import jax.numpy as jnp
import numpy as np

from simengine_envs.draw import Draw
from simengine_envs.snapshot import Snapshot
from simengine_envs.sums import norm_of_each, squares_of_each, sum_of_each, sum_of_last
from simengine_envs.task import Array, Task, Values
from simengine_envs.tasks.frames import turned_quat

if TYPE_CHECKING:
    from simengine import Model

_REST_HEIGHT = 0.04  # [m] of the box's centre while it lies on the floor
_LIFTED = 0.1  # [m] height above the floor at which the box counts as lifted in full
_TOUCH_FORCE = 0.05  # [N] a fingertip with more touches something
_REACH = 0.55  # [m] a box further from the middle is out of the hand's reach
_NEAR = 0.04  # [m] distance of the box from the goal at which the task has succeeded
_RATES = {"x": 0.02, "y": 0.02, "z": 0.02, "yaw": 0.08}  # [m, rad] change of a target by an action of 1
_FINGER_RATE = 0.1  # [rad]


class _Parts(NamedTuple):
    """Ids of the hand and of the box, and the ranges and rates of the targets."""

    joints: np.ndarray
    dofs: np.ndarray
    low: np.ndarray
    high: np.ndarray
    rate: np.ndarray
    box_qpos: int
    box_dof: int
    box: int
    grip: int
    tips: np.ndarray


class PickUp(Task):
    """A hand with three fingers on a gantry, a box on the floor, and a goal above it.

    **Action**, `Box(-1, 1, (10,), float32)`: changes of the targets of the ten position actuators: x, y, z and yaw of
    the gantry, then two joints of each finger. An action of 1 is 0.02 m, 0.08 rad of yaw, or 0.1 rad of a finger.

    **Observation**, `Box(-inf, inf, (51,))`:

    | part             | size | meaning                                                     |
    | ---------------- | ---- | ----------------------------------------------------------- |
    | joint_positions  | 10   | [m, rad]                                                    |
    | joint_velocities | 10   | [m/s, rad/s], times 0.1                                     |
    | target_errors    | 10   | targets of the actuators less the positions [m, rad]        |
    | grip_to_box      | 3    | from the middle between the fingertips to the box [m]       |
    | box_to_goal      | 3    | [m]                                                         |
    | box_height       | 1    | [m]                                                         |
    | box_axes         | 6    | the box's x and y axes                                      |
    | box_velocity     | 6    | linear [m/s] and angular [rad/s], times 0.1                 |
    | contacts         | 2    | do the thumb and a finger touch, 0 or 1                     |

    **Reward**: the sum of these terms, each times its entry in `weights`.

    | term        | weight | value                                                                            |
    | ----------- | ------ | -------------------------------------------------------------------------------- |
    | reach       | 0.3    | exp(-d / 0.1), d the distance from the grip to the box                           |
    | grasp       | 0.5    | exp(-(d / 0.06)^2), times the share of thumb and fingers that touch              |
    | lift        | 1      | height of the box above the floor in units of 0.1 m, at most 1                   |
    | goal        | 3      | lift times exp(-e / 0.15), e the distance from the box to the goal               |
    | action_rate | -0.005 | sum of squared changes of the action                                             |

    **Start**: the hand is open above the middle; box and goal are at random places within `spread` of it.
    **End**: the box is out of reach. `info` has `success` (box within 0.04 m of the goal) and `goal_distance` [m].

    Attributes:
        spread: half width of the square in which box and goal start [m].
        goal_heights: range of the goal's height [m].
    """

    xml_file: str = "grasp"
    frame_skip: int = 10
    weights: Mapping[str, float] = {"reach": 0.3, "grasp": 0.5, "goal": 3.0, "action_rate": -0.005}
    default_camera_config: Mapping[str, Any] = {"distance": 1.5}
    spread: float = 0.15
    goal_heights: tuple[float, float] = (0.15, 0.35)
    parts: Any = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        """Check the arguments. Raises ValueError."""
        super().__post_init__()
        if not 0 <= self.spread <= 0.4:
            raise ValueError(f"spread must be between 0 and 0.4 m, within the hand's reach, not {self.spread}")

    def resolve(self, model: Model) -> Self:
        """Look up the hand and the box."""
        found, mj = copy(self), model.mj
        joints = mj.actuator_trnid[:, 0]
        rate = [_RATES.get(mj.actuator(i).name, _FINGER_RATE) for i in range(model.nu)]
        free = mj.joint("object")
        parts = _Parts(
            joints=mj.jnt_qposadr[joints],
            dofs=mj.jnt_dofadr[joints],
            low=mj.actuator_ctrlrange[:, 0].copy(),
            high=mj.actuator_ctrlrange[:, 1].copy(),
            rate=np.array(rate),
            box_qpos=int(free.qposadr[0]),
            box_dof=int(free.dofadr[0]),
            box=mj.body("object").id,
            grip=mj.site("grip").id,
            tips=np.array([mj.body(f"{name}_tip").id for name in ("thumb", "left", "right")]),
        )
        object.__setattr__(found, "parts", parts)
        return found

    @property
    def derived(self) -> tuple[str, ...]:
        """Fields that the functions read."""
        return ("cfrc_ext", "site_xpos", "xmat")

    def start(self, model: Model, draw: Draw, last: Values | None) -> Mapping[str, Any]:
        """The open hand at rest, and random places of box and goal."""
        count = draw.num_worlds
        qpos = jnp.tile(jnp.asarray(model.mj.qpos0), (count, 1))
        place = draw.uniform((2,), -self.spread, self.spread)
        at = self.parts.box_qpos
        turned = turned_quat(draw.uniform((), -0.3, 0.3) * (self.spread > 0))
        qpos = qpos.at[:, at : at + 2].set(place).at[:, at + 3 : at + 7].set(turned)
        across = draw.uniform((2,), -self.spread, self.spread)
        goal = jnp.concatenate([across, draw.uniform((1,), *self.goal_heights)], axis=1)
        zero = jnp.zeros((count, model.nu))
        return {"qpos": qpos, "memory": {"goal": goal, "target": zero, "last_action": zero}}

    def action_range(self, model: Model) -> tuple[np.ndarray, np.ndarray]:
        """-1 and 1 for each actuator."""
        return -np.ones(model.nu), np.ones(model.nu)

    def control(self, now: Snapshot, action: Array) -> Array:
        """The targets after their change, (n, 10)."""
        change = self.parts.rate * jnp.clip(action, -1, 1)
        return jnp.clip(now.memory["target"] + change, self.parts.low, self.parts.high)

    def remember(self, before: Snapshot, now: Snapshot, draw: Draw) -> Mapping[str, Array]:
        """The targets and the action."""
        return {"target": self.control(now, now.action), "last_action": now.action}

    def _box(self, now: Snapshot) -> Array:
        """Position of the box, (n, 3) [m]."""
        return now.qpos[:, self.parts.box_qpos : self.parts.box_qpos + 3]

    def _to_goal(self, now: Snapshot) -> Array:
        return now.memory["goal"] - self._box(now)

    def _to_box(self, now: Snapshot) -> Array:
        return self._box(now) - now.site_xpos[:, self.parts.grip]

    def _contacts(self, now: Snapshot) -> Array:
        """Whether the thumb, and one of the two fingers, touch something, (n, 2) of 0 or 1."""
        force = jnp.sqrt(sum_of_last(jnp.square(now.cfrc_ext[:, self.parts.tips, 3:])))
        touching = (force > _TOUCH_FORCE).astype(now.qpos.dtype)
        return jnp.stack([touching[:, 0], touching[:, 1:].max(axis=1)], axis=1)

    def rewards(self, before: Snapshot, now: Snapshot) -> Mapping[str, Array]:
        """The terms of the table above."""
        reach = norm_of_each(self._to_box(now))
        lift = jnp.clip((self._box(now)[:, 2] - _REST_HEIGHT) / _LIFTED, 0, 1)
        return {
            "reach": jnp.exp(-reach / 0.1),
            "grasp": jnp.exp(-jnp.square(reach / 0.06)) * sum_of_each(self._contacts(now)) / 2,
            "lift": lift,
            "goal": lift * jnp.exp(-norm_of_each(self._to_goal(now)) / 0.15),
            "action_rate": squares_of_each(now.action - now.memory["last_action"]),
        }

    def terminated(self, before: Snapshot, now: Snapshot) -> Array:
        """Whether the box is out of reach, (n,)."""
        return (jnp.abs(self._box(now)[:, :2]) > _REACH).any(axis=1)

    def observation(self, now: Snapshot, draw: Draw) -> Array:
        """The parts of the table above, (n, 51)."""
        parts = self.parts
        joints, dof = now.qpos[:, parts.joints], parts.box_dof
        axes = now.xmat[:, parts.box].reshape(-1, 3, 3)[:, :, :2].reshape(-1, 6)
        return jnp.concatenate(
            [
                *(joints, 0.1 * now.qvel[:, parts.dofs], now.memory["target"] - joints),
                *(self._to_box(now), self._to_goal(now), self._box(now)[:, 2:], axes),
                *(0.1 * now.qvel[:, dof : dof + 6], self._contacts(now)),
            ],
            axis=1,
        )

    def observation_structure(self, model: Model) -> dict[str, int]:
        """Sizes of the parts of the observation."""
        joints = dict.fromkeys(("joint_positions", "joint_velocities", "target_errors"), model.nu)
        box = {"grip_to_box": 3, "box_to_goal": 3, "box_height": 1, "box_axes": 6, "box_velocity": 6, "contacts": 2}
        return joints | box

    def info(self, now: Snapshot) -> Mapping[str, Array]:
        """Distance of the box from the goal [m], and whether the task has succeeded."""
        distance = norm_of_each(self._to_goal(now))
        return {"goal_distance": distance, "success": distance < _NEAR}
