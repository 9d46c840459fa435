"""Vector environments as training wants them: episodes restart in the step that ends them, actions span [-1, 1]."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box
from gymnasium.vector import AutoresetMode, VectorEnv

import simengine_envs
from simengine_training.errors import TrainingError


def make_envs(env_id: str, num_envs: int, arguments: dict[str, Any] | None = None) -> VectorEnv:
    """Make a vector environment in autoreset mode SAME_STEP, so that no step of a rollout is wasted on a reset.

    Environments that have no vector form of their own are stepped one after another by Gymnasium.

    Args:
        env_id: id under which Gymnasium knows the environment.
        num_envs: environments.
        arguments: further arguments of the environment.

    Raises:
        TrainingError: there is no such environment, or it does not take these arguments.
        ValueError: observations are not vectors, or actions are not vectors with finite limits.
    """
    simengine_envs.register_envs()
    mode: dict[str, Any] = {"autoreset_mode": AutoresetMode.SAME_STEP}
    try:
        if gymnasium.spec(env_id).vector_entry_point is None:
            mode = {"vectorization_mode": "sync", "vector_kwargs": mode}
        vector = gymnasium.make_vec(env_id, num_envs=num_envs, **mode, **(arguments or {}))
    except (gymnasium.error.Error, TypeError) as error:
        message = str(error).rstrip(".")
        raise TrainingError(f"environment {env_id!r} cannot be made: {message}; check its id and arguments") from error
    observation, action = vector.single_observation_space, vector.single_action_space
    if not isinstance(observation, Box) or len(observation.shape) != 1:
        vector.close()
        raise ValueError(f"{env_id} observes {observation}; training needs observations that are vectors (Box)")
    if not isinstance(action, Box) or len(action.shape) != 1 or not action.is_bounded():
        vector.close()
        raise ValueError(f"{env_id} acts in {action}; training needs vectors (Box) with finite limits")
    return vector


def sizes(vector: VectorEnv) -> tuple[int, int]:
    """Entries of an observation and of an action."""
    observation, action = vector.single_observation_space.shape, vector.single_action_space.shape
    assert observation is not None
    assert action is not None
    return observation[0], action[0]


def to_space(actions: np.ndarray, vector: VectorEnv) -> np.ndarray:
    """Actions (n, nu) of the policy, where [-1, 1] spans the action space, as the environment takes them, clipped."""
    space = vector.single_action_space
    assert isinstance(space, Box)
    middle, half = (space.high + space.low) / 2, (space.high - space.low) / 2
    return np.clip(middle + half * actions, space.low, space.high).astype(space.dtype)


def last_observations(observations: np.ndarray, infos: dict[str, Any]) -> np.ndarray:
    """Observations (n, size) that the step led to: those of ended episodes are their last, not the next first."""
    result = observations.copy()
    if "final_obs" in infos:
        for world in np.flatnonzero(infos["_final_obs"]):
            result[world] = infos["final_obs"][world]
    return result
