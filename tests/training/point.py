"""A task that a policy learns within seconds: a cart on a rail has to reach the middle."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium
import jax.numpy as jnp

import simengine_envs
from simengine_envs import Draw, Snapshot, Task
from simengine_envs.task import Array, Values

ID = "simengine-tests/Point-v0"
STEPS = 20  # an episode is truncated after so many steps
GOAL = 0.05  # an episode terminates at this distance from the middle [m]

# A step moves the cart by some 0.1 m for an action of 1.
XML = """
<mujoco>
  <option timestep="0.1" gravity="0 0 0"/>
  <worldbody>
    <body><joint name="x" type="slide" axis="1 0 0" damping="10"/><geom size="0.1" mass="0.1" contype="0"/></body>
  </worldbody>
  <actuator><motor joint="x" gear="10" ctrlrange="-2 2" ctrllimited="true"/></actuator>
</mujoco>
"""


class Point(Task):
    """A cart at a position in [-1, 1]. The reward of a step is minus the distance from the middle.

    Attributes:
        terminate: whether an episode terminates at the goal.
        broken: whether the reward is NaN in the second half of an episode.
    """

    xml_file: str = XML
    weights: Mapping[str, float] = {"distance": -1.0}
    terminate: bool = True
    broken: bool = False

    def start(self, model: Any, draw: Draw, last: Values | None) -> Mapping[str, Any]:
        """Anywhere on the rail."""
        return {"qpos": draw.uniform((1,), -1.0, 1.0)}

    def observation(self, now: Snapshot, draw: Draw) -> Array:
        """Position and a tenth of the velocity."""
        return jnp.concatenate([now.qpos, 0.1 * now.qvel], axis=1)

    def rewards(self, before: Snapshot, now: Snapshot) -> Mapping[str, Array]:
        """The distance."""
        distance = jnp.abs(now.qpos[:, 0])
        return {"distance": jnp.where(self.broken & (now.length > STEPS // 2), jnp.nan, distance)}

    def terminated(self, before: Snapshot, now: Snapshot) -> Array:
        """At the goal."""
        return (jnp.abs(now.qpos[:, 0]) < GOAL) & self.terminate


def register() -> None:
    """Register the environment with Gymnasium."""
    if ID not in gymnasium.registry:
        simengine_envs.register(ID, Point, max_episode_steps=STEPS)
