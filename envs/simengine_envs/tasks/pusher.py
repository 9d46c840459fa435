"""Pusher-v5: an arm with seven joints learns to push a cylinder to a goal.

The task is the one that Gymnasium documents as Pusher-v5.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp

from simengine_envs.draw import Draw
from simengine_envs.snapshot import Snapshot
from simengine_envs.sums import norm_of_each
from simengine_envs.task import Array, Task, Values
from simengine_envs.tasks.elements import body_named
from simengine_envs.tasks.locomotion import squared_action

if TYPE_CHECKING:
    from simengine import Model

_ARM_JOINTS = 7
_SPEED_NOISE = 0.005
_LOW, _HIGH = (-0.3, -0.2), (0.0, 0.2)  # where the cylinder starts, relative to the goal
_CLEAR_OF_GOAL = 0.17
# 38% of the candidates are too near to the goal, so that not one in 10^26 starts has only such candidates.
_CANDIDATES = 64


class Pusher(Task):
    """Pusher, with the observations, rewards, infos and arguments of Gymnasium's Pusher-v5.

    **Action**, `Box(-2, 2, (7,), float32)`: torques on the joints of the arm, which the model clips to [-2, 2] N m.

    | index | joint                                      |
    | ----- | ------------------------------------------ |
    | 0..2  | shoulder: pan, lift, roll of the upper arm |
    | 3..4  | elbow: flex, roll of the forearm           |
    | 5..6  | wrist: flex, roll                          |

    **Observation**, `Box(-inf, inf, (23,), float64)`:

    | index  | meaning                                           | unit  |
    | ------ | ------------------------------------------------- | ----- |
    | 0..6   | angles of the joints of the arm                   | rad   |
    | 7..13  | velocities of these joints                        | rad/s |
    | 14..16 | position of the fingertip `tips_arm`, world frame | m     |
    | 17..19 | position of the cylinder `object`, world frame    | m     |
    | 20..22 | position of the goal `goal`, world frame          | m     |

    **Reward**: `reward_dist + reward_ctrl + reward_near`. `info` of a step has all three, and nothing else.

    | term        | value                                                                           |
    | ----------- | ------------------------------------------------------------------------------- |
    | reward_dist | `-reward_dist_weight` times the distance from the cylinder to the goal [m]      |
    | reward_ctrl | `-reward_control_weight` times the sum of squares of the action, unclipped      |
    | reward_near | `-reward_near_weight` times the distance from the cylinder to the fingertip [m] |

    Positions of the bodies are those of the last evaluation of the step.

    **Start of an episode**: the arm is at `qpos0`, its velocities are uniform in +-0.005 rad/s. The two sliders of the
    cylinder are uniform in [-0.3, 0] m and [-0.2, 0.2] m, but at least 0.17 m from those of the goal, which are 0.

    **End of an episode**: only if the engine stopped the world. Gymnasium's time limit truncates it.

    | argument              | default         | meaning                              |
    | --------------------- | --------------- | ------------------------------------ |
    | xml_file              | "pusher_v5.xml" | model: a path, or a name             |
    | frame_skip            | 5               | engine steps in one environment step |
    | default_camera_config | distance 4      | free camera for rendering            |
    | reward_near_weight    | 0.5             | weight of reward_near                |
    | reward_dist_weight    | 1               | weight of reward_dist                |
    | reward_control_weight | 0.1             | weight of reward_ctrl                |
    """

    xml_file: str = "pusher_v5.xml"
    frame_skip: int = 5
    default_camera_config: Mapping[str, Any] | None = {"trackbodyid": -1, "distance": 4.0}
    reward_near_weight: float = 0.5
    reward_dist_weight: float = 1.0
    reward_control_weight: float = 0.1

    @property
    def derived(self) -> tuple[str, ...]:
        """Positions of the bodies."""
        return ("xpos",)

    def start(self, model: Model, draw: Draw, last: Values | None) -> Mapping[str, Any]:
        """Noise on the velocities of the arm, and a cylinder that is not at the goal."""
        candidates = draw.uniform((_CANDIDATES, 2), _LOW, _HIGH)
        clear = jnp.hypot(candidates[..., 0], candidates[..., 1]) > _CLEAR_OF_GOAL
        first = jnp.argmax(clear, axis=1)
        cylinder = jnp.take_along_axis(candidates, first[:, None, None], axis=1)[:, 0]
        qpos = jnp.broadcast_to(jnp.asarray(model.mj.qpos0, cylinder.dtype), (draw.num_worlds, model.nq))
        qvel = draw.uniform((model.nv,), -_SPEED_NOISE, _SPEED_NOISE)
        return {"qpos": qpos.at[:, -4:-2].set(cylinder).at[:, -2:].set(0), "qvel": qvel.at[:, -4:].set(0)}

    def _places(self, now: Snapshot) -> tuple[Array, Array, Array]:
        """Positions of fingertip, cylinder and goal, (n, 3) each [m]."""
        finger, cylinder, goal = (body_named(self, now.model, name) for name in ("tips_arm", "object", "goal"))
        return now.xpos[:, finger], now.xpos[:, cylinder], now.xpos[:, goal]

    def observation(self, now: Snapshot, draw: Draw) -> Array:
        """Angles and velocities of the arm, and positions of fingertip, cylinder and goal, (n, 23)."""
        return jnp.concatenate([now.qpos[:, :_ARM_JOINTS], now.qvel[:, :_ARM_JOINTS], *self._places(now)], axis=1)

    def rewards(self, before: Snapshot, now: Snapshot) -> Mapping[str, Array]:
        """Terms `dist`, `ctrl` and `near`, each (n,)."""
        finger, cylinder, goal = self._places(now)
        return {
            "dist": -self.reward_dist_weight * norm_of_each(cylinder - goal),
            "ctrl": -self.reward_control_weight * squared_action(now),
            "near": -self.reward_near_weight * norm_of_each(cylinder - finger),
        }
