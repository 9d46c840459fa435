"""Ant-v5: a robot with four legs learns to run along +x.

Source of the task: Schulman et al., "High-Dimensional Continuous Control Using Generalized Advantage Estimation", in
the version that Gymnasium documents as Ant-v5.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import jax.numpy as jnp

from simengine_envs.draw import Draw
from simengine_envs.snapshot import Snapshot
from simengine_envs.sums import squares_of_each
from simengine_envs.task import Array, Task, Values
from simengine_envs.tasks.elements import body_id
from simengine_envs.tasks.locomotion import (
    check_noise,
    check_range,
    finite_state,
    noisy_start,
    plane_position,
    squared_action,
    within,
)

if TYPE_CHECKING:
    from simengine import Model


class Ant(Task):
    """Ant, with the observations, rewards, terminations, infos and arguments of Gymnasium's Ant-v5.

    **Action**, `Box(-1, 1, (8,), float32)`: controls of the motors, which the model clips to [-1, 1]. The torque on a
    joint is 150 times its control [N m].

    | index | joint   | between                              | unit of the torque |
    | ----- | ------- | ------------------------------------ | ------------------ |
    | 0     | hip_4   | torso and right back leg             | N m                |
    | 1     | ankle_4 | the two links of the right back leg  | N m                |
    | 2     | hip_1   | torso and front left leg             | N m                |
    | 3     | ankle_1 | the two links of the front left leg  | N m                |
    | 4     | hip_2   | torso and front right leg            | N m                |
    | 5     | ankle_2 | the two links of the front right leg | N m                |
    | 6     | hip_3   | torso and back left leg              | N m                |
    | 7     | ankle_3 | the two links of the back left leg   | N m                |

    **Observation**, `Box(-inf, inf, (105,), float64)`, whatever the `dtype` of the engine:

    | index   | meaning                                              | joint or body               | unit   |
    | ------- | ---------------------------------------------------- | --------------------------- | ------ |
    | 0       | height of the torso, world frame                     | root                        | m      |
    | 1..4    | orientation of the torso, quaternion w x y z         | root                        | -      |
    | 5..12   | angles of hip and ankle of front left, front right,  | hip_1, ankle_1 ... ankle_4  | rad    |
    |         | back left and right back leg                         |                             |        |
    | 13..15  | velocity of the torso, world frame                   | root                        | m/s    |
    | 16..18  | angular velocity of the torso, its own frame         | root                        | rad/s  |
    | 19..26  | velocities of hip and ankle, legs in the same order  | hip_1, ankle_1 ... ankle_4  | rad/s  |
    | 27..104 | contact torque and force on each body, about the com | bodies 1 (torso) to 13, six | N m, N |
    |         | of the robot: `cfrc_ext` clipped to                  | entries each                |        |
    |         | `contact_force_range`; all zero after a reset        |                             |        |

    With `exclude_current_positions_from_observation=False`, x and y of the torso come first (107 entries). With
    `include_cfrc_ext_in_observation=False`, the last 78 entries are absent.

    **Reward**: `reward_survive + reward_forward + reward_ctrl + reward_contact`. `info` has each term, too.

    | term           | value                                                                                |
    | -------------- | ------------------------------------------------------------------------------------ |
    | reward_survive | `healthy_reward` if the robot is healthy, else 0                                     |
    | reward_forward | `forward_reward_weight` times the mean x velocity of `main_body` over the step [m/s] |
    | reward_ctrl    | `-ctrl_cost_weight` times the sum of squares of the action, unclipped                |
    | reward_contact | `-contact_cost_weight` times the sum of squares of the clipped `cfrc_ext`            |

    `info` also has `x_position`, `y_position` and `distance_from_origin` [m], which a reset gives, too, and
    `x_velocity` and `y_velocity` [m/s].

    **Start of an episode**: `qpos` is `qpos0` plus uniform noise in `+-reset_noise_scale`. `qvel` is normal noise with
    standard deviation `reset_noise_scale`.

    **End of an episode**: if `terminate_when_unhealthy`, the episode terminates when the robot is unhealthy: its height
    is outside `healthy_z_range`, or its state is not finite. The episode always terminates if the engine stopped the
    world. Gymnasium's time limit truncates it.

    | argument                                   | default    | meaning                                        |
    | ------------------------------------------ | ---------- | ---------------------------------------------- |
    | xml_file                                   | "ant.xml"  | model: a path, or one of Gymnasium's assets    |
    | frame_skip                                 | 5          | engine steps in one environment step           |
    | default_camera_config                      | distance 4 | free camera for rendering                      |
    | forward_reward_weight                      | 1          | weight of reward_forward                       |
    | ctrl_cost_weight                           | 0.5        | weight of reward_ctrl                          |
    | contact_cost_weight                        | 5e-4       | weight of reward_contact                       |
    | healthy_reward                             | 1          | reward of a step if the robot is healthy       |
    | main_body                                  | 1          | id or name of the body whose speed is rewarded |
    | terminate_when_unhealthy                   | True       | end the episode of an unhealthy robot          |
    | healthy_z_range                            | (0.2, 1)   | healthy heights, ends included [m]             |
    | contact_force_range                        | (-1, 1)    | clipping of `cfrc_ext`                         |
    | reset_noise_scale                          | 0.1        | size of the noise at the start                 |
    | exclude_current_positions_from_observation | True       | leave out x and y of the torso                 |
    | include_cfrc_ext_in_observation            | True       | observe `cfrc_ext`                             |

    The arguments of the engine and of rendering are those of `SingleEnv` and `BatchEnv`.
    """

    xml_file: str = "ant.xml"
    frame_skip: int = 5
    default_camera_config: Mapping[str, Any] | None = {"distance": 4.0}
    forward_reward_weight: float = 1.0
    ctrl_cost_weight: float = 0.5
    contact_cost_weight: float = 5e-4
    healthy_reward: float = 1.0
    main_body: int | str = 1
    terminate_when_unhealthy: bool = True
    healthy_z_range: tuple[float, float] = (0.2, 1.0)
    contact_force_range: tuple[float, float] = (-1.0, 1.0)
    reset_noise_scale: float = 0.1
    exclude_current_positions_from_observation: bool = True
    include_cfrc_ext_in_observation: bool = True

    def __post_init__(self) -> None:
        """Check the arguments. Raises ValueError."""
        super().__post_init__()
        check_range(self, "healthy_z_range", "contact_force_range")
        check_noise(self)

    def resolve(self, model: Model) -> Self:
        """Replace the name of `main_body` by its id. Raises ValueError if the model has no such body."""
        return replace(self, main_body=body_id(self, model, "main_body"))

    @property
    def _reads_forces(self) -> bool:
        return self.include_cfrc_ext_in_observation or self.contact_cost_weight != 0

    @property
    def derived(self) -> tuple[str, ...]:
        """`xpos`, and `cfrc_ext` if the observation or the reward needs it."""
        return ("xpos", "cfrc_ext") if self._reads_forces else ("xpos",)

    def observation_structure(self, model: Model) -> dict[str, int]:
        """Sizes of the parts of the observation."""
        skipped = 2 * self.exclude_current_positions_from_observation
        return {
            "skipped_qpos": skipped,
            "qpos": model.nq - skipped,
            "qvel": model.nv,
            "cfrc_ext": 6 * (model.nbody - 1) * self.include_cfrc_ext_in_observation,
        }

    def start(self, model: Model, draw: Draw, last: Values | None) -> Mapping[str, Any]:
        """Uniform noise on `qpos` and normal noise on `qvel`, both scaled by `reset_noise_scale`."""
        return noisy_start(model, draw, self.reset_noise_scale, normal_velocities=True)

    def _forces(self, now: Snapshot) -> Array:
        """Clipped `cfrc_ext` of all bodies except the world body, (n, 6 (nbody - 1)) [N m and N]."""
        forces = now.cfrc_ext[:, 1:]
        return jnp.clip(forces.reshape(len(forces), -1), *self.contact_force_range)

    def observation(self, now: Snapshot, draw: Draw) -> Array:
        """Positions, velocities and contact forces, (n, 105) by default."""
        parts = [now.qpos[:, 2 * self.exclude_current_positions_from_observation :], now.qvel]
        if self.include_cfrc_ext_in_observation:
            parts.append(self._forces(now))
        return jnp.concatenate(parts, axis=1)

    def _velocity(self, before: Snapshot, now: Snapshot) -> Array:
        """Mean velocity of the main body in the plane, (n, 2) [m/s]; its `xpos` is that of the last evaluation."""
        return (now.xpos[:, self.main_body, :2] - before.xpos[:, self.main_body, :2]) / now.dt

    def rewards(self, before: Snapshot, now: Snapshot) -> Mapping[str, Array]:
        """The four reward terms, each (n,)."""
        cost = jnp.zeros_like(now.qpos[:, 0])
        if self._reads_forces:
            cost = self.contact_cost_weight * squares_of_each(self._forces(now))
        return {
            "forward": self.forward_reward_weight * self._velocity(before, now)[:, 0],
            "survive": self.healthy_reward * self._healthy(now).astype(now.qpos.dtype),
            "ctrl": -self.ctrl_cost_weight * squared_action(now),
            "contact": -cost,
        }

    def _healthy(self, now: Snapshot) -> Array:
        return finite_state(now) & within(now.qpos[:, 2], self.healthy_z_range)

    def terminated(self, before: Snapshot, now: Snapshot) -> Array:
        """Whether the robot is unhealthy, if that ends episodes, (n,)."""
        return ~self._healthy(now) & self.terminate_when_unhealthy

    def info(self, now: Snapshot) -> Mapping[str, Array]:
        """Position of the torso, from `qpos`, each (n,) [m]."""
        return plane_position(now)

    def step_info(self, before: Snapshot, now: Snapshot) -> Mapping[str, Array]:
        """Velocity of the main body, each (n,) [m/s]."""
        velocity = self._velocity(before, now)
        return {"x_velocity": velocity[:, 0], "y_velocity": velocity[:, 1]}
