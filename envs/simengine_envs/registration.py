"""The ids under which Gymnasium finds the environments."""

from __future__ import annotations

from typing import NamedTuple

import gymnasium

NAMESPACE = "simengine"


class Registration(NamedTuple):
    """One environment id.

    Attributes:
        id: name and version, as Gymnasium's own environment has them.
        entry_point: the single environment, "module:class".
        vector_entry_point: the vector environment, "module:class".
        max_episode_steps: environment steps after which an episode is truncated.
        reward_threshold: return at which the task counts as solved, as Gymnasium has it.
    """

    id: str
    entry_point: str
    vector_entry_point: str
    max_episode_steps: int
    reward_threshold: float | None


REGISTRATIONS: tuple[Registration, ...] = (
    Registration("Ant-v5", "simengine_envs.tasks.ant:AntEnv", "simengine_envs.tasks.ant:AntVectorEnv", 1000, 6000.0),
)


def register_envs() -> None:
    """Register every environment with Gymnasium as `simengine/<id>`; a second call changes nothing.

    This is the target of the `gymnasium.envs` entry point named `simengine`. The ids carry their namespace themselves,
    so that they come out the same whether a plugin loader has opened that namespace or not.
    """
    for item in REGISTRATIONS:
        full_id = f"{NAMESPACE}/{item.id}"
        if full_id not in gymnasium.registry:
            gymnasium.register(
                id=full_id,
                entry_point=item.entry_point,
                vector_entry_point=item.vector_entry_point,
                max_episode_steps=item.max_episode_steps,
                reward_threshold=item.reward_threshold,
            )
