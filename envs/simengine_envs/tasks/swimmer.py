"""Swimmer-v5: a chain of three links in a viscous fluid learns to swim along +x.

Source of the task: Coulom, "Reinforcement Learning Using Neural Networks, with Applications to Motor Control", in the
version that Gymnasium documents as Swimmer-v5.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp

from simengine_envs.draw import Draw
from simengine_envs.snapshot import Snapshot
from simengine_envs.task import Array, Task, Values
from simengine_envs.tasks.locomotion import check_noise, noisy_start, plane_position, squared_action

if TYPE_CHECKING:
    from simengine import Model


class Swimmer(Task):
    """Swimmer, with the observations, rewards, infos and arguments of Gymnasium's Swimmer-v5.

    **Action**, `Box(-1, 1, (2,), float32)`: controls of the motors between the first and the second, and the second and
    the third link, which the model clips to [-1, 1]. The torque on a joint is 150 times its control [N m].

    **Observation**, `Box(-inf, inf, (8,), float64)`:

    | index | meaning                                        | unit  |
    | ----- | ---------------------------------------------- | ----- |
    | 0     | angle of the first link in the plane           | rad   |
    | 1..2  | angles of the two joints                       | rad   |
    | 3..4  | velocity of the tip of the first link, x and y | m/s   |
    | 5     | angular velocity of the first link             | rad/s |
    | 6..7  | velocities of the two joints                   | rad/s |

    With `exclude_current_positions_from_observation=False`, x and y of the tip come first (10 entries).

    **Reward**: `reward_forward + reward_ctrl`. `info` has each term, too.

    | term           | value                                                                 |
    | -------------- | --------------------------------------------------------------------- |
    | reward_forward | `forward_reward_weight` times the mean x velocity over the step [m/s] |
    | reward_ctrl    | `-ctrl_cost_weight` times the sum of squares of the action, unclipped |

    `info` also has `x_position`, `y_position` and `distance_from_origin` [m], which a reset gives, too, and
    `x_velocity` and `y_velocity` [m/s].

    **Start of an episode**: `qpos0` at rest plus uniform noise in `+-reset_noise_scale` on `qpos` and `qvel`.

    **End of an episode**: only if the engine stopped the world. Gymnasium's time limit truncates it.

    | argument                                   | default       | meaning                              |
    | ------------------------------------------ | ------------- | ------------------------------------ |
    | xml_file                                   | "swimmer.xml" | model: a path, or a name             |
    | frame_skip                                 | 4             | engine steps in one environment step |
    | default_camera_config                      | MuJoCo's      | free camera for rendering            |
    | forward_reward_weight                      | 1             | weight of reward_forward             |
    | ctrl_cost_weight                           | 1e-4          | weight of reward_ctrl                |
    | reset_noise_scale                          | 0.1           | size of the noise at the start       |
    | exclude_current_positions_from_observation | True          | leave out x and y of the tip         |
    """

    xml_file: str = "swimmer.xml"
    frame_skip: int = 4
    forward_reward_weight: float = 1.0
    ctrl_cost_weight: float = 1e-4
    reset_noise_scale: float = 0.1
    exclude_current_positions_from_observation: bool = True

    def __post_init__(self) -> None:
        """Check the arguments. Raises ValueError."""
        super().__post_init__()
        check_noise(self)

    def observation_structure(self, model: Model) -> dict[str, int]:
        """Sizes of the parts of the observation."""
        skipped = 2 * self.exclude_current_positions_from_observation
        return {"skipped_qpos": skipped, "qpos": model.nq - skipped, "qvel": model.nv}

    def start(self, model: Model, draw: Draw, last: Values | None) -> Mapping[str, Any]:
        """Uniform noise on `qpos` and `qvel`, in +-`reset_noise_scale`."""
        return noisy_start(model, draw, self.reset_noise_scale, normal_velocities=False)

    def observation(self, now: Snapshot, draw: Draw) -> Array:
        """Coordinates and velocities, (n, 8) by default."""
        return jnp.concatenate([now.qpos[:, 2 * self.exclude_current_positions_from_observation :], now.qvel], axis=1)

    def _velocity(self, before: Snapshot, now: Snapshot) -> Array:
        """Mean velocity of the tip in the plane, (n, 2) [m/s]."""
        return (now.qpos[:, :2] - before.qpos[:, :2]) / now.dt

    def rewards(self, before: Snapshot, now: Snapshot) -> Mapping[str, Array]:
        """Terms `forward` and `ctrl`, each (n,)."""
        return {
            "forward": self.forward_reward_weight * self._velocity(before, now)[:, 0],
            "ctrl": -self.ctrl_cost_weight * squared_action(now),
        }

    def info(self, now: Snapshot) -> Mapping[str, Array]:
        """Position of the tip, each (n,) [m]."""
        return plane_position(now)

    def step_info(self, before: Snapshot, now: Snapshot) -> Mapping[str, Array]:
        """Mean velocity of the tip over the step, each (n,) [m/s]."""
        velocity = self._velocity(before, now)
        return {"x_velocity": velocity[:, 0], "y_velocity": velocity[:, 1]}
