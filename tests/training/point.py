"""A vector environment that a policy learns within seconds: a point on a line has to move to the middle."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

ID = "simengine-tests/Point-v0"
STEPS = 20  # an episode is truncated after so many steps
GOAL = 0.05  # an episode terminates at this distance from the middle


class PointVectorEnv(VectorEnv):
    """A point with a position in [-1, 1].

    An action is in [-2, 2] and moves the point by a tenth of it. The reward is minus the distance from the middle. The
    only autoreset mode is `SAME_STEP`. With terminate=False, episodes do not terminate at the goal.
    """

    def __init__(self, num_envs: int, autoreset_mode: AutoresetMode, terminate: bool = True):
        assert autoreset_mode == AutoresetMode.SAME_STEP
        self.metadata = {"autoreset_mode": autoreset_mode}
        self.num_envs, self.terminate = num_envs, terminate
        self.single_observation_space = Box(-1, 1, (1,), np.float64)
        self.single_action_space = Box(-2, 2, (1,), np.float32)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.actions: list[np.ndarray] = []

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[np.ndarray, dict[str, Any]]:
        self.random = np.random.default_rng(seed)
        self.position = self.random.uniform(-1, 1, self.num_envs)
        # Staggered episodes have different ages, so that they do not all end in the same step.
        self.age = np.arange(self.num_envs) % STEPS if options == "staggered" else np.zeros(self.num_envs, dtype=int)
        return self.position[:, None].copy(), {}

    def step(self, actions: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        assert actions.dtype == np.float32
        assert (np.abs(actions) <= 2).all()
        self.actions.append(actions)
        self.position = np.clip(self.position + 0.1 * actions[:, 0], -1, 1)
        self.age += 1
        rewards = -np.abs(self.position)
        terminated = (np.abs(self.position) < GOAL) & self.terminate
        truncated = self.age >= STEPS
        ended, infos = terminated | truncated, {}
        if ended.any():
            final = np.full(self.num_envs, None, dtype=object)
            for world in np.flatnonzero(ended):
                final[world] = self.position[world : world + 1].copy()
            infos = {"final_obs": final, "_final_obs": ended.copy()}
            self.position[ended] = self.random.uniform(-1, 1, ended.sum())
            self.age[ended] = 0
        return self.position[:, None].copy(), rewards, terminated, truncated, infos


def register() -> None:
    """Register the environment with Gymnasium."""
    if ID not in gymnasium.registry:
        gymnasium.register(ID, entry_point=None, vector_entry_point=PointVectorEnv)
