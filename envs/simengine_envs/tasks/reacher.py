"""Reacher-v5: an arm with two links in a plane learns to bring its fingertip to a target.

The task is the one that Gymnasium documents as Reacher-v5.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np

from simengine_envs.draw import Draw
from simengine_envs.snapshot import Snapshot
from simengine_envs.sums import norm_of_each
from simengine_envs.task import Array, Task, Values
from simengine_envs.tasks.elements import body_named
from simengine_envs.tasks.locomotion import squared_action

if TYPE_CHECKING:
    from simengine import Model

_ARM_NOISE, _SPEED_NOISE = 0.1, 0.005
_GOAL_RADIUS = 0.2


class Reacher(Task):
    """Reacher, with the observations, rewards, infos and arguments of Gymnasium's Reacher-v5.

    **Action**, `Box(-1, 1, (2,), float32)`: controls of the motors of shoulder and elbow, which the model clips to
    [-1, 1]. The torque on a joint is 200 times its control [N m].

    **Observation**, `Box(-inf, inf, (10,), float64)`:

    | index | meaning                                                | unit  |
    | ----- | ------------------------------------------------------ | ----- |
    | 0..1  | cosines of the two joint angles                        | -     |
    | 2..3  | sines of the two joint angles                          | -     |
    | 4..5  | x and y of the target                                  | m     |
    | 6..7  | velocities of the two joints                           | rad/s |
    | 8..9  | from the target to the fingertip, x and y, world frame | m     |

    **Reward**: `reward_dist + reward_ctrl`. `info` of a step has both, and nothing else.

    | term        | value                                                                         |
    | ----------- | ----------------------------------------------------------------------------- |
    | reward_dist | `-reward_dist_weight` times the distance from the fingertip to the target [m] |
    | reward_ctrl | `-reward_control_weight` times the sum of squares of the action, unclipped    |

    Positions of fingertip and target are those of the last evaluation of the step.

    **Start of an episode**: angles are those of `qpos0` plus uniform noise in +-0.1 rad, their velocities uniform in
    +-0.005 rad/s. The target is uniform in a disc of radius 0.2 m about the origin, and rests.

    **End of an episode**: only if the engine stopped the world. Gymnasium's time limit truncates it.

    | argument              | default        | meaning                              |
    | --------------------- | -------------- | ------------------------------------ |
    | xml_file              | "reacher.xml"  | model: a path, or a name             |
    | frame_skip            | 2              | engine steps in one environment step |
    | default_camera_config | follows body 0 | free camera for rendering            |
    | reward_dist_weight    | 1              | weight of reward_dist                |
    | reward_control_weight | 1              | weight of reward_ctrl                |
    """

    xml_file: str = "reacher.xml"
    frame_skip: int = 2
    default_camera_config: Mapping[str, Any] | None = {"trackbodyid": 0}
    reward_dist_weight: float = 1.0
    reward_control_weight: float = 1.0

    @property
    def derived(self) -> tuple[str, ...]:
        """Positions of the bodies."""
        return ("xpos",)

    def start(self, model: Model, draw: Draw, last: Values | None) -> Mapping[str, Any]:
        """Noise on the arm, and a target in a disc."""
        moved = draw.uniform((model.nq,), -_ARM_NOISE, _ARM_NOISE)
        qpos = jnp.asarray(model.mj.qpos0, moved.dtype) + moved
        # A radius whose square is uniform makes points uniform in the disc.
        radius, angle = _GOAL_RADIUS * jnp.sqrt(draw.uniform()), draw.uniform(high=2 * np.pi)
        goal = jnp.stack([radius * jnp.cos(angle), radius * jnp.sin(angle)], axis=1)
        qvel = draw.uniform((model.nv,), -_SPEED_NOISE, _SPEED_NOISE)
        return {"qpos": qpos.at[:, -2:].set(goal), "qvel": qvel.at[:, -2:].set(0)}

    def _miss(self, now: Snapshot) -> Array:
        """From the target to the fingertip, (n, 3) [m]."""
        finger, target = (body_named(self, now.model, name) for name in ("fingertip", "target"))
        return now.xpos[:, finger] - now.xpos[:, target]

    def observation(self, now: Snapshot, draw: Draw) -> Array:
        """Angles, target, velocities and what separates fingertip and target, (n, 10)."""
        angles = now.qpos[:, :2]
        parts = [jnp.cos(angles), jnp.sin(angles), now.qpos[:, 2:], now.qvel[:, :2], self._miss(now)[:, :2]]
        return jnp.concatenate(parts, axis=1)

    def rewards(self, before: Snapshot, now: Snapshot) -> Mapping[str, Array]:
        """Terms `dist` and `ctrl`, each (n,)."""
        return {
            "dist": -self.reward_dist_weight * norm_of_each(self._miss(now)),
            "ctrl": -self.reward_control_weight * squared_action(now),
        }
