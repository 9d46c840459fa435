"""HumanoidStandup-v5: a robot with two legs and two arms that lies on the floor learns to stand up.

Source of the task: Tassa, Erez and Todorov, "Synthesis and Stabilization of Complex Behaviors through Online Trajectory
Optimization", in the version that Gymnasium documents as HumanoidStandup-v5.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np

from simengine_envs.snapshot import Snapshot
from simengine_envs.task import Array
from simengine_envs.tasks.humanoids import HumanoidTask
from simengine_envs.tasks.locomotion import check_range, squared_action


class HumanoidStandup(HumanoidTask):
    """HumanoidStandup, with the observations, rewards, infos and arguments of Gymnasium's HumanoidStandup-v5.

    **Action** and **observation** are those of `simengine_envs.tasks.humanoid.Humanoid`.

    **Reward**: `reward_linup + reward_quadctrl + reward_impact + 1`. `info` has each term, too.

    | term            | value                                                                         |
    | --------------- | ----------------------------------------------------------------------------- |
    | reward_linup    | the height of the torso over the time step of the engine [m/s]                |
    | reward_quadctrl | `-ctrl_cost_weight` times the sum of squares of the action, unclipped         |
    | reward_impact   | minus `impact_cost_weight` times the sum of squares of `cfrc_ext`, clipped to |
    |                 | `impact_cost_range`                                                           |

    `info` also has `x_position`, `y_position` and `z_distance_from_origin` of the torso [m], `tendon_length` (2,) and
    `tendon_velocity` (2,), which a reset gives, too.

    **Start of an episode**: `qpos0` at rest plus uniform noise in `+-reset_noise_scale` on `qpos` and `qvel`.

    **End of an episode**: only if the engine stopped the world. Gymnasium's time limit truncates it.

    | argument                                   | default               | meaning                              |
    | ------------------------------------------ | --------------------- | ------------------------------------ |
    | xml_file                                   | "humanoidstandup.xml" | model: a path, or a name             |
    | frame_skip                                 | 5                     | engine steps in one environment step |
    | default_camera_config                      | follows body 1        | free camera for rendering            |
    | uph_cost_weight                            | 1                     | accepted, and not used               |
    | ctrl_cost_weight                           | 0.1                   | weight of reward_quadctrl            |
    | impact_cost_weight                         | 5e-7                  | weight of reward_impact              |
    | impact_cost_range                          | (-inf, 10)            | clipping of `-reward_impact`         |
    | reset_noise_scale                          | 1e-2                  | size of the noise at the start       |
    | exclude_current_positions_from_observation | True                  | leave out x and y of the torso       |
    | include_cinert_in_observation              | True                  | observe `cinert`                     |
    | include_cvel_in_observation                | True                  | observe `cvel`                       |
    | include_qfrc_actuator_in_observation       | True                  | observe `qfrc_actuator`              |
    | include_cfrc_ext_in_observation            | True                  | observe `cfrc_ext`                   |
    """

    xml_file: str = "humanoidstandup.xml"
    default_camera_config: Mapping[str, Any] | None = {
        "trackbodyid": 1,
        "distance": 4.0,
        "lookat": np.array((0.0, 0.0, 0.8925)),
        "elevation": -20.0,
    }
    uph_cost_weight: float = 1.0
    ctrl_cost_weight: float = 0.1
    impact_cost_weight: float = 5e-7
    impact_cost_range: tuple[float, float] = (-float("inf"), 10.0)

    def __post_init__(self) -> None:
        """Check the arguments. Raises ValueError."""
        super().__post_init__()
        check_range(self, "impact_cost_range")

    @property
    def _impact_weight(self) -> float:
        return self.impact_cost_weight

    def rewards(self, before: Snapshot, now: Snapshot) -> Mapping[str, Array]:
        """The terms `linup`, `quadctrl` and `impact`, and the constant `one`, each (n,)."""
        height = now.qpos[:, 2]
        return {
            "linup": height / float(now.model.opt.timestep),
            "quadctrl": -self.ctrl_cost_weight * squared_action(now),
            "impact": -self._impact(now, self.impact_cost_range),
            "one": jnp.ones_like(height),
        }

    def term_names(self, names: Mapping[str, Any]) -> dict[str, str]:
        """The names of the terms in the info, which does not have the constant."""
        return {name: f"reward_{name}" for name in names if name != "one"}

    def info(self, now: Snapshot) -> Mapping[str, Array]:
        """Position of the torso, each (n,) [m], and the tendons, each (n, ntendon)."""
        return {**super().info(now), "z_distance_from_origin": now.qpos[:, 2] - now.model.mj.qpos0[2]}
