"""Registers the environments with Gymnasium."""

from __future__ import annotations

from typing import NamedTuple

import gymnasium

NAMESPACE = "simengine"


class Registration(NamedTuple):
    """One environment id.

    Attributes:
        id: name and version, the same as those of Gymnasium's own environment.
        entry_point: the single environment, "module:class".
        vector_entry_point: the vector environment, "module:class".
        max_episode_steps: environment steps after which an episode is truncated.
        reward_threshold: return at which the task counts as solved, the same as Gymnasium's.
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

    The entry point `simengine` in the group `gymnasium.envs` calls this function. The ids contain their namespace, so
    that they are the same whether Gymnasium's plugin loader or an import calls it.
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
