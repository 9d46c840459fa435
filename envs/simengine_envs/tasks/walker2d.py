"""Walker2d-v5: a planar robot with two legs learns to walk along +x.

Source of the task: Erez, Tassa and Todorov, "Infinite Horizon Model Predictive Control for Nonlinear Periodic Tasks",
with a second leg, in the version that Gymnasium documents as Walker2d-v5.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from simengine_envs.tasks.planar import PlanarWalker


class Walker2d(PlanarWalker):
    """Walker2d, with the observations, rewards, terminations, infos and arguments of Gymnasium's Walker2d-v5.

    **Action**, `Box(-1, 1, (6,), float32)`: controls of the motors of thigh, leg and foot of the right leg, then of the
    left one. The model clips them to [-1, 1]. The torque on a joint is 100 times its control [N m].

    **Observation**, `Box(-inf, inf, (17,), float64)`:

    | index  | meaning                                                       | unit  |
    | ------ | ------------------------------------------------------------- | ----- |
    | 0      | height z of the torso                                         | m     |
    | 1      | pitch of the torso                                            | rad   |
    | 2..7   | angles of the joints, in the order of the action              | rad   |
    | 8..9   | velocity of the torso along x and z, clipped                  | m/s   |
    | 10     | rate of the pitch, clipped                                    | rad/s |
    | 11..16 | velocities of the joints, in the order of the action, clipped | rad/s |

    Velocities are clipped to [-10, 10]. With `exclude_current_positions_from_observation=False`, x of the torso comes
    first (18 entries).

    **Reward**: `reward_survive + reward_forward + reward_ctrl`. `info` has each term, too.

    | term           | value                                                                 |
    | -------------- | --------------------------------------------------------------------- |
    | reward_survive | `healthy_reward` if the robot is healthy, else 0                      |
    | reward_forward | `forward_reward_weight` times the mean x velocity over the step [m/s] |
    | reward_ctrl    | `-ctrl_cost_weight` times the sum of squares of the action, unclipped |

    `info` also has `x_position` and `z_distance_from_origin` [m], which a reset gives, too, and `x_velocity` [m/s].

    **Start of an episode**: `qpos0` at rest plus uniform noise in `+-reset_noise_scale` on `qpos` and `qvel`.

    **End of an episode**: if `terminate_when_unhealthy`, the episode terminates when the height or the pitch of the
    torso is outside its range. It always terminates if the engine stopped the world. Gymnasium's time limit truncates
    it.

    | argument                                   | default           | meaning                                  |
    | ------------------------------------------ | ----------------- | ---------------------------------------- |
    | xml_file                                   | "walker2d_v5.xml" | model: a path, or a name                 |
    | frame_skip                                 | 4                 | engine steps in one environment step     |
    | default_camera_config                      | follows body 2    | free camera for rendering                |
    | forward_reward_weight                      | 1                 | weight of reward_forward                 |
    | ctrl_cost_weight                           | 1e-3              | weight of reward_ctrl                    |
    | healthy_reward                             | 1                 | reward of a step if the robot is healthy |
    | terminate_when_unhealthy                   | True              | end the episode of an unhealthy robot    |
    | healthy_z_range                            | (0.8, 2)          | healthy heights, ends excluded [m]       |
    | healthy_angle_range                        | (-1, 1)           | healthy pitches, ends excluded [rad]     |
    | reset_noise_scale                          | 5e-3              | size of the noise at the start           |
    | exclude_current_positions_from_observation | True              | leave out x of the torso                 |
    """

    xml_file: str = "walker2d_v5.xml"
    frame_skip: int = 4
    default_camera_config: Mapping[str, Any] | None = {
        "trackbodyid": 2,
        "distance": 4.0,
        "lookat": np.array((0.0, 0.0, 1.15)),
        "elevation": -20.0,
    }
    healthy_z_range: tuple[float, float] = (0.8, 2.0)
