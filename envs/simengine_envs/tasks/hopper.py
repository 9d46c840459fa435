"""Hopper-v5: a planar robot with one leg learns to hop along +x.

Source of the task: Erez, Tassa and Todorov, "Infinite Horizon Model Predictive Control for Nonlinear Periodic Tasks",
in the version that Gymnasium documents as Hopper-v5.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from simengine_envs.snapshot import Snapshot
from simengine_envs.task import Array
from simengine_envs.tasks.locomotion import check_range, strictly_within
from simengine_envs.tasks.planar import PlanarWalker


class Hopper(PlanarWalker):
    """Hopper, with the observations, rewards, terminations, infos and arguments of Gymnasium's Hopper-v5.

    **Action**, `Box(-1, 1, (3,), float32)`: controls of the motors of thigh, leg and foot, which the model clips to
    [-1, 1]. The torque on a joint is 200 times its control [N m].

    **Observation**, `Box(-inf, inf, (11,), float64)`:

    | index | meaning                                      | unit  |
    | ----- | -------------------------------------------- | ----- |
    | 0     | height z of the torso                        | m     |
    | 1     | pitch of the torso                           | rad   |
    | 2..4  | angles of thigh, leg and foot                | rad   |
    | 5..6  | velocity of the torso along x and z, clipped | m/s   |
    | 7     | rate of the pitch, clipped                   | rad/s |
    | 8..10 | velocities of thigh, leg and foot, clipped   | rad/s |

    Velocities are clipped to [-10, 10]. With `exclude_current_positions_from_observation=False`, x of the torso comes
    first (12 entries).

    **Reward**: `reward_survive + reward_forward + reward_ctrl`. `info` has each term, too.

    | term           | value                                                                 |
    | -------------- | --------------------------------------------------------------------- |
    | reward_survive | `healthy_reward` if the robot is healthy, else 0                      |
    | reward_forward | `forward_reward_weight` times the mean x velocity over the step [m/s] |
    | reward_ctrl    | `-ctrl_cost_weight` times the sum of squares of the action, unclipped |

    `info` also has `x_position` and `z_distance_from_origin` [m], which a reset gives, too, and `x_velocity` [m/s].

    **Start of an episode**: `qpos0` at rest plus uniform noise in `+-reset_noise_scale` on `qpos` and `qvel`.

    **End of an episode**: if `terminate_when_unhealthy`, the episode terminates when the robot is unhealthy: its height
    or pitch is outside its range, or an entry of `qpos` after the height, or of `qvel`, is outside
    `healthy_state_range`. The episode always terminates if the engine stopped the world. Gymnasium's time limit
    truncates it.

    | argument                                   | default        | meaning                                  |
    | ------------------------------------------ | -------------- | ---------------------------------------- |
    | xml_file                                   | "hopper.xml"   | model: a path, or a name                 |
    | frame_skip                                 | 4              | engine steps in one environment step     |
    | default_camera_config                      | follows body 2 | free camera for rendering                |
    | forward_reward_weight                      | 1              | weight of reward_forward                 |
    | ctrl_cost_weight                           | 1e-3           | weight of reward_ctrl                    |
    | healthy_reward                             | 1              | reward of a step if the robot is healthy |
    | terminate_when_unhealthy                   | True           | end the episode of an unhealthy robot    |
    | healthy_state_range                        | (-100, 100)    | healthy coordinates and velocities       |
    | healthy_z_range                            | (0.7, inf)     | healthy heights [m]                      |
    | healthy_angle_range                        | (-0.2, 0.2)    | healthy pitches [rad]                    |
    | reset_noise_scale                          | 5e-3           | size of the noise at the start           |
    | exclude_current_positions_from_observation | True           | leave out x of the torso                 |

    The ends of the ranges are unhealthy.
    """

    xml_file: str = "hopper.xml"
    frame_skip: int = 4
    default_camera_config: Mapping[str, Any] | None = {
        "trackbodyid": 2,
        "distance": 3.0,
        "lookat": np.array((0.0, 0.0, 1.15)),
        "elevation": -20.0,
    }
    healthy_state_range: tuple[float, float] = (-100.0, 100.0)
    healthy_z_range: tuple[float, float] = (0.7, float("inf"))
    healthy_angle_range: tuple[float, float] = (-0.2, 0.2)

    def __post_init__(self) -> None:
        """Check the arguments. Raises ValueError."""
        super().__post_init__()
        check_range(self, "healthy_state_range")

    def _healthy(self, now: Snapshot) -> Array:
        usual = [strictly_within(state, self.healthy_state_range).all(axis=1) for state in (now.qpos[:, 2:], now.qvel)]
        return super()._healthy(now) & usual[0] & usual[1]
