"""Makes vector environments for training, and converts their actions and observations."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box
from gymnasium.vector import AutoresetMode, VectorEnv

import simengine_envs
from simengine_envs.registration import VECTOR_ENTRY
from simengine_training.errors import TrainingError


def make_envs(
    env_id: str, num_envs: int, arguments: dict[str, Any] | None = None, on_device: bool = False
) -> VectorEnv:
    """Make a vector environment in autoreset mode SAME_STEP, so that no step of a rollout is spent on a reset.

    If an environment has no vector entry point, Gymnasium steps single environments one after another.

    Args:
        env_id: id of the environment in Gymnasium.
        num_envs: number of environments.
        arguments: further arguments of the environment.
        on_device: whether simengine's own environments give arrays of JAX instead of NumPy.

    Raises:
        TrainingError: there is no such environment, or it does not accept these arguments.
        ValueError: observations are not vectors, or actions are not vectors with finite limits.
    """
    simengine_envs.register_envs()
    mode: dict[str, Any] = {"autoreset_mode": AutoresetMode.SAME_STEP}
    try:
        entry = gymnasium.spec(env_id).vector_entry_point
        if entry is None:
            mode = {"vectorization_mode": "sync", "vector_kwargs": mode}
        elif entry == VECTOR_ENTRY and on_device:
            mode["array"] = "jax"
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
    """The number of entries of an observation, and of an action."""
    observation, action = vector.single_observation_space.shape, vector.single_action_space.shape
    assert observation is not None
    assert action is not None
    return observation[0], action[0]


def to_space(actions: np.ndarray, vector: VectorEnv) -> np.ndarray:
    """Scale actions (n, nu) of the policy from [-1, 1] to the limits of the action space, and clip them to it."""
    space = vector.single_action_space
    assert isinstance(space, Box)
    middle, half = (space.high + space.low) / 2, (space.high - space.low) / 2
    return np.clip(middle + half * actions, space.low, space.high).astype(space.dtype)


def last_observations(observations: np.ndarray, infos: dict[str, Any]) -> np.ndarray:
    """The observations (n, size) that a step led to.

    For an episode that ended, this is its last observation. `observations` has the first one of the next episode there.
    """
    result = observations.copy()
    if "final_obs" in infos:
        for world in np.flatnonzero(infos["_final_obs"]):
            result[world] = infos["final_obs"][world]
    return result
