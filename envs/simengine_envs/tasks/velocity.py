"""Velocity tracking: a legged robot learns to walk as fast, and to turn as fast, as commands say."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import field
from typing import TYPE_CHECKING, Any, Self

import jax.numpy as jnp
import numpy as np

from simengine.errors import did_you_mean
from simengine_envs.draw import Draw
from simengine_envs.snapshot import Snapshot
from simengine_envs.sums import norm_of_each, squares_of_each, sum_of_each, sum_of_last
from simengine_envs.task import Array, Task, Values
from simengine_envs.tasks.commands import new_commands, next_level
from simengine_envs.tasks.frames import into_frame, turned_quat, up_in_frame
from simengine_envs.tasks.ground import height_near
from simengine_envs.tasks.legged import legged, legged_model, stance_of
from simengine_envs.tasks.locomotion import check_range, finite_state

if TYPE_CHECKING:
    from simengine import Model

TERRAINS = ("flat", "rough")
WEIGHTS: Mapping[str, float] = {
    "tracking_linear": 1.0,
    "tracking_yaw": 0.5,
    "alive": 0.2,
    "upright": -1.0,
    "height": -5.0,
    "vertical_speed": -0.5,
    "swaying": -0.02,
    "pose": -0.05,
    "action_rate": -0.01,
    "energy": -2e-4,
    "air_time": 0.5,
    "slip": -0.05,
}
PARTS = (
    *("linear_velocity", "angular_velocity", "up", "command"),
    *("joint_angles", "joint_velocities", "last_action"),
)

_TRACKING_WIDTH = 0.25  # [(m/s)^2] squared error at which tracking earns 1/e
_TOUCH_FORCE = 1.0  # [N] a foot with more touches the ground
_SHORT_STEP = 0.2  # [s] swings earn the time by which they are longer
_STANDING = 0.1  # commands slower than this [m/s] earn no air time
_SPREAD = 4.0  # [m] half width of the square in which robots start on rough ground


class VelocityTracking(Task):
    """A legged robot that is told how fast to walk forwards, sideways, and to turn.

    **Action**, `Box(-1, 1, (nu,), float32)`: target angles of the joints, in units of `action_scale` from the home
    pose.

    **Observation**, `Box(-inf, inf, (12 + 3 nu,))`, with uniform noise whose half widths `noise` gives by name:

    | part             | size | meaning                                                             |
    | ---------------- | ---- | ------------------------------------------------------------------- |
    | linear_velocity  | 3    | of the torso, in its own frame [m/s]                                |
    | angular_velocity | 3    | of the torso, in its own frame [rad/s]                              |
    | up               | 3    | the world's upward direction in the torso's frame                   |
    | command          | 3    | forward and leftward velocity [m/s], turning rate [rad/s]           |
    | joint_angles     | nu   | from the home pose [rad]                                            |
    | joint_velocities | nu   | [rad/s], times 0.1                                                  |
    | last_action      | nu   |                                                                     |

    **Reward**: the sum of these terms, each times its entry in `weights`. Those with a negative weight are costs.

    | term            | value                                                                                |
    | --------------- | ------------------------------------------------------------------------------------ |
    | tracking_linear | exp(-e / 0.25), e the squared error of the velocity in the plane                     |
    | tracking_yaw    | exp(-e / 0.25), e the squared error of the turning rate                              |
    | alive           | 1                                                                                    |
    | upright         | squared horizontal part of `up`                                                      |
    | height          | squared error of the torso's height above the feet that touch, or the lowest foot    |
    | vertical_speed  | square of the torso's vertical velocity                                              |
    | swaying         | square of the torso's roll and pitch rates                                           |
    | pose            | sum of squared joint angles from the home pose                                       |
    | action_rate     | sum of squared changes of the action                                                 |
    | energy          | sum of the magnitudes of the actuators' power [W]                                    |
    | air_time        | for feet that touch down: time of the swing less 0.2 s; 0 while the command is small |
    | slip            | sum over feet that touch of their squared horizontal velocity                        |

    **Start**: the home pose with a random heading, on rough ground at a random place. Each world has its own friction
    and mass. **During an episode**, new commands come every `command_interval` on average, kicks every `push_interval`.
    **Curriculum**: commands are drawn from the part `level` of `command_range`. An episode that tracked well raises
    the level of its world, and one that tracked badly lowers it. `info` has `level`, `command`, and `speed_error`.
    **End**: the robot falls: its torso tilts by more than 60 degrees, or sinks below half its height.

    Attributes:
        robot: a name in `simengine_envs.tasks.legged.ROBOTS`.
        terrain: "flat" or "rough".
        command_range: greatest forward and sideways velocity [m/s] and turning rate [rad/s].
        command_interval: mean time between new commands [s].
        start_level: level of the first episodes, in (0, 1]; 1 for no curriculum.
        push_interval: mean time between kicks [s]; 0 for none.
        push_velocity: greatest change of each horizontal velocity by a kick [m/s].
        friction_scale, mass_scale: ranges of the factors on the feet's friction and on the torso's mass; None for 1.
        noise: half widths of the observation's noise by part; parts that it does not name have none.
        action_scale: angle of an action of 1 [rad].
    """

    xml_file: str = ""  # `robot` and `terrain` name the model
    frame_skip: int = 5
    weights: Mapping[str, float] = WEIGHTS
    default_camera_config: Mapping[str, Any] = {"distance": 3.0}
    robot: str = "quadruped"
    terrain: str = "flat"
    command_range: tuple[float, float, float] = (1.0, 0.5, 1.0)
    command_interval: float = 5.0
    start_level: float = 0.3
    push_interval: float = 8.0
    push_velocity: float = 0.5
    friction_scale: tuple[float, float] | None = (0.5, 1.25)
    mass_scale: tuple[float, float] | None = (0.85, 1.15)
    noise: Mapping[str, float] = {
        "linear_velocity": 0.1,
        "angular_velocity": 0.2,
        "up": 0.05,
        "joint_angles": 0.01,
        "joint_velocities": 0.1,
    }
    action_scale: float = 0.5
    stance: Any = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        """Check the arguments. Raises ValueError."""
        super().__post_init__()
        legged(self.robot)
        for name in self.noise:
            if name not in PARTS:
                raise ValueError(
                    f"noise names {name!r}, which is no part of the observation{did_you_mean(name, PARTS)}"
                )
        if self.terrain not in TERRAINS:
            raise ValueError(f"terrain is {self.terrain!r}; give one of {', '.join(TERRAINS)}")
        if not 0 < self.start_level <= 1:
            raise ValueError(f"start_level must be above 0 and at most 1, not {self.start_level}")
        if self.command_interval <= 0 or self.push_interval < 0:
            raise ValueError("command_interval must be positive and push_interval must not be negative")
        check_range(self, *(name for name in ("friction_scale", "mass_scale") if getattr(self, name) is not None))

    def load(self) -> Model:
        """The robot on its ground. Raises ImportError if its package is not installed."""
        return legged_model(self.robot, self.terrain == "rough")

    def resolve(self, model: Model) -> Self:
        """Look up the home pose, the feet and the ground."""
        found = copy(self)
        object.__setattr__(found, "stance", stance_of(self.robot, model))
        return found

    @property
    def derived(self) -> tuple[str, ...]:
        """Fields that the rewards read."""
        return ("actuator_force", "cfrc_ext", "site_xpos")

    def start(self, model: Model, draw: Draw, last: Values | None) -> Mapping[str, Any]:
        """The home pose, a random heading, scaled parameters, and a level that depends on the last episode."""
        count, stance = draw.num_worlds, self.stance
        place, height = jnp.zeros((count, 2)), jnp.full(count, stance.qpos[2])
        if stance.ground is not None:
            place = draw.uniform((2,), -_SPREAD, _SPREAD)
            height = height + height_near(stance.ground, place)
        level = jnp.full(count, self.start_level) if last is None else next_level(last)
        joints = stance.qpos[7:] + draw.uniform((model.nq - 7,), -0.05, 0.05)
        quat = turned_quat(draw.uniform((), -np.pi, np.pi))
        feet, zero = len(stance.sites), jnp.zeros((count, 1))
        return {
            "qpos": jnp.concatenate([place, height[:, None], quat, joints], axis=1),
            "params": self._scaled(model, draw),
            "memory": {
                "command": new_commands(draw, level, self.command_range),
                "last_action": jnp.zeros((count, model.nu)),
                "air_time": jnp.tile(zero, feet),
                "level": level,
                "tracked": zero[:, 0],
            },
        }

    def _scaled(self, model: Model, draw: Draw) -> Mapping[str, Array]:
        params = {}
        if self.friction_scale is not None:
            factor = draw.uniform((), *self.friction_scale)
            params["geom_friction"] = factor[:, None, None] * model.mj.geom_friction
        if self.mass_scale is not None:
            torso = jnp.asarray(np.arange(model.nbody) == self.stance.torso)
            factor = draw.uniform((), *self.mass_scale)
            params["body_mass"] = jnp.where(torso, factor[:, None], 1.0) * model.mj.body_mass
        return params

    def event(self, now: Snapshot, draw: Draw) -> Mapping[str, Array]:
        """Kicks: sudden changes of the torso's horizontal velocity."""
        if not self.push_interval:
            return {}
        kick = draw.uniform((2,), -1, 1) * self.push_velocity * draw.chance(now.dt / self.push_interval)[:, None]
        return {"qvel": now.qvel.at[:, :2].add(kick)}

    def remember(self, before: Snapshot, now: Snapshot, draw: Draw) -> Mapping[str, Array]:
        """The action, the feet's times in the air, how well the command was tracked, and sometimes a new command."""
        again = draw.chance(now.dt / self.command_interval)[:, None]
        new = new_commands(draw, now.memory["level"], self.command_range)
        return {
            "command": jnp.where(again, new, now.memory["command"]),
            "last_action": now.action,
            "air_time": jnp.where(self._touching(now), 0.0, now.memory["air_time"] + now.dt),
            "tracked": now.memory["tracked"] + self._tracking(now)[0],
        }

    # ------------------------------------------------------------------------------------------------ actions

    def action_range(self, model: Model) -> tuple[np.ndarray, np.ndarray]:
        """-1 and 1 for each actuator."""
        return -np.ones(model.nu), np.ones(model.nu)

    def control(self, now: Snapshot, action: Array) -> Array:
        """Target angles around the home pose, (n, nu) [rad]."""
        return self.stance.ctrl + self.action_scale * jnp.clip(action, -1, 1)

    # ------------------------------------------------------------------------------------------------ rewards

    def _touching(self, now: Snapshot) -> Array:
        """Whether each foot touches the ground, (n, feet) bool."""
        force = now.cfrc_ext[:, self.stance.bodies, 3:]
        return sum_of_last(jnp.square(force)) > _TOUCH_FORCE**2

    def _tracking(self, now: Snapshot) -> tuple[Array, Array]:
        """How well the velocity in the plane and the turning rate are tracked, (n,) each in [0, 1]."""
        velocity, command = into_frame(now.qpos[:, 3:7], now.qvel[:, :3]), now.memory["command"]
        linear = squares_of_each(command[:, :2] - velocity[:, :2])
        turning = jnp.square(command[:, 2] - now.qvel[:, 5])
        return jnp.exp(-linear / _TRACKING_WIDTH), jnp.exp(-turning / _TRACKING_WIDTH)

    def _height(self, now: Snapshot) -> Array:
        """Height of the torso above the lowest foot, (n,) [m]."""
        return now.qpos[:, 2] - now.site_xpos[:, self.stance.sites, 2].min(axis=1)

    def rewards(self, before: Snapshot, now: Snapshot) -> Mapping[str, Array]:
        """The terms of the table above."""
        linear, turning = self._tracking(now)
        touching, feet = self._touching(now), now.site_xpos[:, self.stance.sites, :2]
        slip = sum_of_last(jnp.square(feet - before.site_xpos[:, self.stance.sites, :2])) / now.dt**2
        swing = jnp.where(touching & (now.memory["air_time"] > 0), now.memory["air_time"] - _SHORT_STEP, 0.0)
        walking = norm_of_each(now.memory["command"]) > _STANDING
        return {
            "tracking_linear": linear,
            "tracking_yaw": turning,
            "alive": jnp.ones_like(linear),
            "upright": squares_of_each(up_in_frame(now.qpos[:, 3:7])[:, :2]),
            "height": jnp.square(self._height(now) - self.stance.height),
            "vertical_speed": jnp.square(now.qvel[:, 2]),
            "swaying": squares_of_each(now.qvel[:, 3:5]),
            "pose": squares_of_each(now.qpos[:, 7:] - self.stance.qpos[7:]),
            "action_rate": squares_of_each(now.action - now.memory["last_action"]),
            "energy": sum_of_each(jnp.abs(now.actuator_force * now.qvel[:, 6:])),
            "air_time": sum_of_each(swing) * walking,
            "slip": sum_of_each(slip * touching),
        }

    def terminated(self, before: Snapshot, now: Snapshot) -> Array:
        """Whether the robot has fallen, (n,)."""
        tilted = up_in_frame(now.qpos[:, 3:7])[:, 2] < 0.5
        return tilted | (self._height(now) < 0.5 * self.stance.height) | ~finite_state(now)

    # ------------------------------------------------------------------------------------------------ what is seen

    def observation(self, now: Snapshot, draw: Draw) -> Array:
        """The parts of the table above, with noise."""
        quat = now.qpos[:, 3:7]
        parts = {
            "linear_velocity": into_frame(quat, now.qvel[:, :3]),
            "angular_velocity": now.qvel[:, 3:6],
            "up": up_in_frame(quat),
            "command": now.memory["command"],
            "joint_angles": now.qpos[:, 7:] - self.stance.qpos[7:],
            "joint_velocities": 0.1 * now.qvel[:, 6:],
            "last_action": now.memory["last_action"],
        }
        for name, width in self.noise.items():
            parts[name] += draw.uniform(parts[name].shape[1:], -width, width)
        return jnp.concatenate(list(parts.values()), axis=1)

    def observation_structure(self, model: Model) -> dict[str, int]:
        """Sizes of the parts of the observation."""
        return dict.fromkeys(PARTS[:4], 3) | dict.fromkeys(PARTS[4:], model.nu)

    def info(self, now: Snapshot) -> Mapping[str, Array]:
        """The command, the level, and the error of the velocity in the plane [m/s]."""
        velocity = into_frame(now.qpos[:, 3:7], now.qvel[:, :3])[:, :2]
        command = now.memory["command"]
        error = norm_of_each(command[:, :2] - velocity)
        return {"command": command, "level": now.memory["level"], "speed_error": error}
