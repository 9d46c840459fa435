"""HalfCheetah-v5: a planar robot with two legs learns to run along +x.

Source of the task: Wawrzynski, "A Cat-Like Robot Real-Time Learning to Run", in the version that Gymnasium documents as
HalfCheetah-v5.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from simengine_envs.draw import Draw
from simengine_envs.task import Values
from simengine_envs.tasks.locomotion import noisy_start
from simengine_envs.tasks.planar import PlanarRunner

if TYPE_CHECKING:
    from simengine import Model


class HalfCheetah(PlanarRunner):
    """HalfCheetah, with the observations, rewards, infos and arguments of Gymnasium's HalfCheetah-v5.

    **Action**, `Box(-1, 1, (6,), float32)`: controls of the motors, which the model clips to [-1, 1]. The torque on a
    joint is the gear times the control [N m].

    | index | joint                      | gear        |
    | ----- | -------------------------- | ----------- |
    | 0..2  | back thigh, shin and foot  | 120, 90, 60 |
    | 3..5  | front thigh, shin and foot | 120, 60, 30 |

    **Observation**, `Box(-inf, inf, (17,), float64)`:

    | index  | meaning                                              | unit  |
    | ------ | ---------------------------------------------------- | ----- |
    | 0      | z of the torso, relative to `qpos0`                  | m     |
    | 1      | pitch of the torso                                   | rad   |
    | 2..7   | angles of the joints, in the order of the action     | rad   |
    | 8..9   | velocity of the torso along x and z                  | m/s   |
    | 10     | rate of the pitch                                    | rad/s |
    | 11..16 | velocities of the joints, in the order of the action | rad/s |

    With `exclude_current_positions_from_observation=False`, x of the torso comes first (18 entries).

    **Reward**: `reward_forward + reward_ctrl`. `info` has each term, too.

    | term           | value                                                                 |
    | -------------- | --------------------------------------------------------------------- |
    | reward_forward | `forward_reward_weight` times the mean x velocity over the step [m/s] |
    | reward_ctrl    | `-ctrl_cost_weight` times the sum of squares of the action, unclipped |

    `info` also has `x_position` [m], which a reset gives, too, and `x_velocity` [m/s].

    **Start of an episode**: `qpos` is `qpos0` plus uniform noise in `+-reset_noise_scale`. `qvel` is normal noise with
    standard deviation `reset_noise_scale`.

    **End of an episode**: only if the engine stopped the world. Gymnasium's time limit truncates it.

    | argument                                   | default            | meaning                              |
    | ------------------------------------------ | ------------------ | ------------------------------------ |
    | xml_file                                   | "half_cheetah.xml" | model: a path, or a name             |
    | frame_skip                                 | 5                  | engine steps in one environment step |
    | default_camera_config                      | distance 4         | free camera for rendering            |
    | forward_reward_weight                      | 1                  | weight of reward_forward             |
    | ctrl_cost_weight                           | 0.1                | weight of reward_ctrl                |
    | reset_noise_scale                          | 0.1                | size of the noise at the start       |
    | exclude_current_positions_from_observation | True               | leave out x of the torso             |
    """

    xml_file: str = "half_cheetah.xml"
    frame_skip: int = 5
    default_camera_config: Mapping[str, Any] | None = {"distance": 4.0}
    ctrl_cost_weight: float = 0.1
    reset_noise_scale: float = 0.1

    def start(self, model: Model, draw: Draw, last: Values | None) -> Mapping[str, Any]:
        """Uniform noise on `qpos` and normal noise on `qvel`, both scaled by `reset_noise_scale`."""
        return noisy_start(model, draw, self.reset_noise_scale, normal_velocities=True)
