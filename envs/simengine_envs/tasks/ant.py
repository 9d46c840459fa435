"""Ant-v5: a robot with four legs learns to run along +x.

Source of the task: Schulman et al., "High-Dimensional Continuous Control Using Generalized Advantage Estimation", in
the version that Gymnasium documents as Ant-v5.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from simengine_envs.single import SingleEnv
from simengine_envs.task import Array, Fields, Outcome, Task, array_namespace
from simengine_envs.vector import BatchEnv

if TYPE_CHECKING:
    from simengine import Model


@dataclass(frozen=True, kw_only=True)
class AntTask(Task):
    """Arguments and array functions of Ant-v5. The docstring of `AntEnv` explains both."""

    xml_file: str = "ant.xml"
    frame_skip: int = 5
    default_camera_config: Mapping[str, float | int] = field(default_factory=lambda: {"distance": 4.0})
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
        """Check the arguments.

        Raises:
            ValueError: the low end of a range is above its high end, or the noise scale is negative.
        """
        super().__post_init__()
        for name in ("healthy_z_range", "contact_force_range"):
            low, high = getattr(self, name)
            if not low <= high:
                raise ValueError(f"AntTask: {name} must be (low, high) with low <= high, not ({low}, {high})")
        if not self.reset_noise_scale >= 0:
            raise ValueError(f"AntTask: reset_noise_scale must not be negative, not {self.reset_noise_scale}")

    def resolve(self, model: Model) -> AntTask:
        """Replace the name of `main_body` by its id.

        Raises:
            ValueError: the model has no such body.
        """
        mj = model.mj
        names = [mj.body(i).name for i in range(model.nbody)]
        body = self.main_body
        if isinstance(body, str) and body in names:
            return replace(self, main_body=names.index(body))
        if isinstance(body, str) or not 0 <= body < model.nbody:
            raise ValueError(
                f"AntTask: the model has no body {body!r} for main_body; give an id below {model.nbody} or one of "
                f"{[name for name in names if name]}"
            )
        return self

    @property
    def _needs_cfrc_ext(self) -> bool:
        return self.include_cfrc_ext_in_observation or self.contact_cost_weight != 0

    @property
    def derived(self) -> tuple[str, ...]:
        """`xpos`, and `cfrc_ext` if the observation or the reward needs it."""
        return ("xpos", "cfrc_ext") if self._needs_cfrc_ext else ("xpos",)

    def observation_structure(self, model: Model) -> dict[str, int]:
        """Sizes of the parts of the observation."""
        skipped = 2 * self.exclude_current_positions_from_observation
        return {
            "skipped_qpos": skipped,
            "qpos": model.nq - skipped,
            "qvel": model.nv,
            "cfrc_ext": 6 * (model.nbody - 1) * self.include_cfrc_ext_in_observation,
        }

    def initial_state(
        self, rng: np.random.Generator, init_qpos: np.ndarray, init_qvel: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Add uniform noise to `qpos`, and then normal noise to `qvel`, both scaled by `reset_noise_scale`."""
        scale = self.reset_noise_scale
        qpos = init_qpos + rng.uniform(low=-scale, high=scale, size=init_qpos.shape)
        return qpos, init_qvel + scale * rng.standard_normal(init_qvel.shape)

    def _contact_forces(self, fields: Fields) -> Array:
        """Clipped `cfrc_ext` of all bodies except the world body, (n, 6 (nbody - 1)) [N m and N]."""
        xp = array_namespace(fields["cfrc_ext"])
        forces = fields["cfrc_ext"][:, 1:]
        return xp.clip(forces.reshape(forces.shape[0], -1), *self.contact_force_range)

    def observation(self, fields: Fields) -> Array:
        """Positions, velocities and contact forces, (n, 105) by default; see `AntEnv`."""
        xp = array_namespace(fields["qpos"])
        parts = [fields["qpos"][:, 2 * self.exclude_current_positions_from_observation :], fields["qvel"]]
        if self.include_cfrc_ext_in_observation:
            parts.append(self._contact_forces(fields))
        return xp.concatenate(parts, axis=1)

    def memory(self, fields: Fields) -> dict[str, Array]:
        """Position of the main body, (n, 2) [m]. Like MuJoCo's `xpos`, it is that of the last evaluation."""
        return {"xy": fields["xpos"][:, self.main_body, :2]}

    def outcome(self, memory: Fields, fields: Fields, action: Array, finite: Array, dt: float) -> Outcome:
        """The four reward terms of `AntEnv`, each (n,)."""
        xp = array_namespace(fields["qpos"])
        velocity = (self.memory(fields)["xy"] - memory["xy"]) / dt
        healthy = self._healthy(fields, finite)
        forward_reward = velocity[:, 0] * self.forward_reward_weight
        healthy_reward = healthy * float(self.healthy_reward)
        ctrl_cost = self.ctrl_cost_weight * xp.sum(xp.square(action), axis=1)
        contact_cost = self._contact_cost(fields)
        info = {
            **self.reset_info(fields),
            "x_velocity": velocity[:, 0],
            "y_velocity": velocity[:, 1],
            "reward_forward": forward_reward,
            "reward_ctrl": -ctrl_cost,
            "reward_contact": -contact_cost,
            "reward_survive": healthy_reward,
        }
        reward = forward_reward + healthy_reward - (ctrl_cost + contact_cost)
        return Outcome(reward, ~healthy & self.terminate_when_unhealthy, info)

    def _healthy(self, fields: Fields, finite: Array) -> Array:
        xp = array_namespace(fields["qpos"])
        low, high = self.healthy_z_range
        for name in ("qpos", "qvel"):
            finite = finite & xp.all(xp.isfinite(fields[name]), axis=1)
        height = fields["qpos"][:, 2]
        return finite & (low <= height) & (height <= high)

    def _contact_cost(self, fields: Fields) -> Array:
        xp = array_namespace(fields["qpos"])
        if not self._needs_cfrc_ext:
            return xp.zeros_like(fields["qpos"][:, 0])
        return self.contact_cost_weight * xp.sum(xp.square(self._contact_forces(fields)), axis=1)

    def reset_info(self, fields: Fields) -> dict[str, Array]:
        """Position of the torso, from `qpos`, each (n,) [m]."""
        xp = array_namespace(fields["qpos"])
        x, y = fields["qpos"][:, 0], fields["qpos"][:, 1]
        return {"x_position": x, "y_position": y, "distance_from_origin": xp.sqrt(x * x + y * y)}


class AntEnv(SingleEnv):
    """One Ant, with the observations, rewards, terminations, infos and arguments of Gymnasium's Ant-v5.

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

    | index   | meaning                                               | joint or body                | unit     |
    | ------- | ----------------------------------------------------- | ---------------------------- | -------- |
    | 0       | height of the torso, world frame                      | root                         | m        |
    | 1..4    | orientation of the torso, quaternion w x y z          | root                         | -        |
    | 5..12   | angles of hip and ankle of front left, front right,   | hip_1, ankle_1 ... ankle_4   | rad      |
    |         | back left and right back leg                          |                              |          |
    | 13..15  | velocity of the torso, world frame                    | root                         | m/s      |
    | 16..18  | angular velocity of the torso, its own frame          | root                         | rad/s    |
    | 19..26  | velocities of hip and ankle, legs in the same order   | hip_1, ankle_1 ... ankle_4   | rad/s    |
    | 27..104 | contact torque and force on each body, about the com  | bodies 1 (torso) to 13, six  | N m, N   |
    |         | of the robot: `cfrc_ext` clipped to                   | entries each                 |          |
    |         | `contact_force_range`; all zero after a reset         |                              |          |

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

    The arguments of the engine and of rendering are those of `SingleEnv`.
    """

    task_type = AntTask


class AntVectorEnv(BatchEnv):
    """Many Ants in one simulation. `AntEnv` documents one Ant, and `BatchEnv` documents the batch."""

    task_type = AntTask
