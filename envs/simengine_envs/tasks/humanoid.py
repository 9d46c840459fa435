"""Humanoid-v5: a robot with two legs and two arms learns to walk along +x.

Source of the task: Tassa, Erez and Todorov, "Synthesis and Stabilization of Complex Behaviors through Online Trajectory
Optimization", in the version that Gymnasium documents as Humanoid-v5.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from simengine_envs.snapshot import Snapshot
from simengine_envs.task import Array
from simengine_envs.tasks.humanoids import HumanoidTask
from simengine_envs.tasks.locomotion import check_range, plane_position, squared_action, strictly_within


class Humanoid(HumanoidTask):
    """Humanoid, with the observations, rewards, terminations, infos and arguments of Gymnasium's Humanoid-v5.

    **Action**, `Box(-0.4, 0.4, (17,), float32)`: controls of the motors, which the model clips to [-0.4, 0.4]. The
    torque on a joint is the gear times the control [N m].

    | index  | joint                               | gear               |
    | ------ | ----------------------------------- | ------------------ |
    | 0..2   | abdomen y, z and x                  | 100                |
    | 3..6   | right hip x, z and y, right knee    | 100, 100, 300, 200 |
    | 7..10  | left hip x, z and y, left knee      | 100, 100, 300, 200 |
    | 11..13 | right shoulder 1 and 2, right elbow | 25                 |
    | 14..16 | left shoulder 1 and 2, left elbow   | 25                 |

    **Observation**, `Box(-inf, inf, (348,), float64)`. Bodies are 1 (torso) to 13. The joints are in the order of the
    action, except that abdomen z comes before abdomen y.

    | index    | meaning                                                               | unit             |
    | -------- | --------------------------------------------------------------------- | ---------------- |
    | 0        | height of the torso, world frame                                      | m                |
    | 1..4     | orientation of the torso, quaternion w x y z                          | -                |
    | 5..21    | angles of the joints                                                  | rad              |
    | 22..24   | velocity of the torso, world frame                                    | m/s              |
    | 25..27   | angular velocity of the torso, its own frame                          | rad/s            |
    | 28..44   | velocities of the joints                                              | rad/s            |
    | 45..174  | `cinert`: inertia and mass of each body about the com of the robot    | kg m^2, kg m, kg |
    | 175..252 | `cvel`: velocity of each body about the com, rotation first           | rad/s, m/s       |
    | 253..269 | `qfrc_actuator`: torques of the motors on the joints                  | N m              |
    | 270..347 | `cfrc_ext`: contact torque and force on each body; zero after a reset | N m, N           |

    With `exclude_current_positions_from_observation=False`, x and y of the torso come first (350 entries). The
    arguments `include_..._in_observation` leave out the parts that they name.

    **Reward**: `reward_survive + reward_forward + reward_ctrl + reward_contact`. `info` has each term, too.

    | term           | value                                                                              |
    | -------------- | ---------------------------------------------------------------------------------- |
    | reward_survive | `healthy_reward` if the robot is healthy, else 0                                   |
    | reward_forward | `forward_reward_weight` times the mean x velocity of the robot's com over the step |
    | reward_ctrl    | `-ctrl_cost_weight` times the sum of squares of the action, unclipped              |
    | reward_contact | minus `contact_cost_weight` times the sum of squares of `cfrc_ext`, clipped to     |
    |                | `contact_cost_range`                                                               |

    `info` also has `x_position`, `y_position` and `distance_from_origin` of the torso [m], `tendon_length` (2,) and
    `tendon_velocity` (2,), which a reset gives, too, and `x_velocity` and `y_velocity` of the com [m/s].

    **Start of an episode**: `qpos0` at rest plus uniform noise in `+-reset_noise_scale` on `qpos` and `qvel`.

    **End of an episode**: if `terminate_when_unhealthy`, the episode terminates when the height of the torso is outside
    `healthy_z_range`. It always terminates if the engine stopped the world. Gymnasium's time limit truncates it.

    | argument                                   | default        | meaning                                  |
    | ------------------------------------------ | -------------- | ---------------------------------------- |
    | xml_file                                   | "humanoid.xml" | model: a path, or a name                 |
    | frame_skip                                 | 5              | engine steps in one environment step     |
    | default_camera_config                      | follows body 1 | free camera for rendering                |
    | forward_reward_weight                      | 1.25           | weight of reward_forward                 |
    | ctrl_cost_weight                           | 0.1            | weight of reward_ctrl                    |
    | contact_cost_weight                        | 5e-7           | weight of reward_contact                 |
    | contact_cost_range                         | (-inf, 10)     | clipping of `-reward_contact`            |
    | healthy_reward                             | 5              | reward of a step if the robot is healthy |
    | terminate_when_unhealthy                   | True           | end the episode of an unhealthy robot    |
    | healthy_z_range                            | (1, 2)         | healthy heights, ends excluded [m]       |
    | reset_noise_scale                          | 1e-2           | size of the noise at the start           |
    | exclude_current_positions_from_observation | True           | leave out x and y of the torso           |
    | include_cinert_in_observation              | True           | observe `cinert`                         |
    | include_cvel_in_observation                | True           | observe `cvel`                           |
    | include_qfrc_actuator_in_observation       | True           | observe `qfrc_actuator`                  |
    | include_cfrc_ext_in_observation            | True           | observe `cfrc_ext`                       |
    """

    xml_file: str = "humanoid.xml"
    default_camera_config: Mapping[str, Any] | None = {
        "trackbodyid": 1,
        "distance": 4.0,
        "lookat": np.array((0.0, 0.0, 2.0)),
        "elevation": -20.0,
    }
    forward_reward_weight: float = 1.25
    ctrl_cost_weight: float = 0.1
    contact_cost_weight: float = 5e-7
    contact_cost_range: tuple[float, float] = (-float("inf"), 10.0)
    healthy_reward: float = 5.0
    terminate_when_unhealthy: bool = True
    healthy_z_range: tuple[float, float] = (1.0, 2.0)

    def __post_init__(self) -> None:
        """Check the arguments. Raises ValueError."""
        super().__post_init__()
        check_range(self, "contact_cost_range", "healthy_z_range")

    @property
    def _impact_weight(self) -> float:
        return self.contact_cost_weight

    @property
    def derived(self) -> tuple[str, ...]:
        """What the observation and the contact cost need, and `subtree_com`."""
        return (*super().derived, "subtree_com")

    def _velocity(self, before: Snapshot, now: Snapshot) -> Array:
        """Mean velocity of the robot's com in the plane, (n, 2) [m/s]; the com is that of the last evaluation."""
        return (now.subtree_com[:, 0, :2] - before.subtree_com[:, 0, :2]) / now.dt

    def _healthy(self, now: Snapshot) -> Array:
        return now.finite & strictly_within(now.qpos[:, 2], self.healthy_z_range)

    def rewards(self, before: Snapshot, now: Snapshot) -> Mapping[str, Array]:
        """The four reward terms, each (n,)."""
        return {
            "survive": self.healthy_reward * self._healthy(now).astype(now.qpos.dtype),
            "forward": self.forward_reward_weight * self._velocity(before, now)[:, 0],
            "ctrl": -self.ctrl_cost_weight * squared_action(now),
            "contact": -self._impact(now, self.contact_cost_range),
        }

    def terminated(self, before: Snapshot, now: Snapshot) -> Array:
        """Whether the robot is unhealthy, if that ends episodes, (n,)."""
        return ~self._healthy(now) & self.terminate_when_unhealthy

    def info(self, now: Snapshot) -> Mapping[str, Array]:
        """Position of the torso in the plane, each (n,) [m], and the tendons, each (n, ntendon)."""
        return {**super().info(now), **plane_position(now)}

    def step_info(self, before: Snapshot, now: Snapshot) -> Mapping[str, Array]:
        """Mean velocity of the com over the step, each (n,) [m/s]."""
        velocity = self._velocity(before, now)
        return {"x_velocity": velocity[:, 0], "y_velocity": velocity[:, 1]}
