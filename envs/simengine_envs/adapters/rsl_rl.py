"""`RslRlVecEnv`: many worlds as one `VecEnv` of rsl_rl, with PyTorch's tensors on the environment's device."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from simengine_envs.adapters.making import batch_env
from simengine_envs.adapters.missing import missing
from simengine_envs.task import Task
from simengine_envs.vector import BatchEnv

try:
    import torch
    from rsl_rl.env import VecEnv
    from tensordict import TensorDict
except ImportError as error:
    raise missing("rsl_rl", "rsl-rl", error) from error


class RslRlVecEnv(VecEnv):
    """A task in many worlds, for the runners of rsl_rl.

    A world whose episode ends starts the next one in the same step. The tensors are in the engine's precision, share
    the memory of JAX's arrays, and nothing waits for the device.

    Args:
        env: id of an environment, such as "simengine/Ant-v5"; or the class of a task; or a `BatchEnv` with
            `array="torch"` and `autoreset_mode=AutoresetMode.SAME_STEP`.
        num_envs: number of worlds; one if it is not given.
        seed: seed of world 0, while world i gets `seed + i`; None for random seeds.
        clip_actions: whether actions are clipped to the action space. The policies of rsl_rl have no limits.
        **arguments: as for `BatchEnv`.

    Attributes:
        num_envs: number of worlds.
        num_actions: number of entries of an action.
        max_episode_length: steps after which an episode is truncated.
        device: PyTorch's device of all tensors.
        cfg: what loggers record: the arguments of the task, and those of the environment.

    Raises:
        TypeError: an argument is unknown, or the environment is of another kind.
        ValueError: an argument is out of its range, there is no such id, or episodes have no limit.
        simengine.errors.BackendError: the backend is not available.
    """

    def __init__(
        self,
        env: str | type[Task] | BatchEnv,
        num_envs: int | None = None,
        seed: int | None = None,
        clip_actions: bool = True,
        **arguments: Any,
    ):
        self.env = batch_env(env, num_envs, "torch", **arguments)
        limit = self.env.pure.max_episode_steps
        if limit is None:
            raise ValueError("rsl_rl needs a limit of the length of episodes; give max_episode_steps")
        self.num_envs = self.env.num_envs
        self.num_actions = self.env.pure.action_size
        self.max_episode_length = limit
        self.cfg: dict[str, Any] = {
            "task": type(self.env.task).__name__,
            "num_envs": self.num_envs,
            "seed": seed,
            "max_episode_steps": limit,
            "backend": self.env.runner.backend,
            "dtype": self.env.runner.dtype,
            **self.env.task.arguments(),
        }
        self._observation, _ = self.env.reset(seed=seed)
        self.device: torch.device = self._observation.device
        space: Any = self.env.single_action_space
        self._limits = (self._tensor(space.low), self._tensor(space.high)) if clip_actions else None

    def _tensor(self, values: np.ndarray) -> torch.Tensor:
        return torch.tensor(values, dtype=self._observation.dtype, device=self.device)

    @property
    def episode_length_buf(self) -> torch.Tensor:
        """Steps of the episodes so far, (num_envs,) int32. Assign it to change them: it is a copy."""
        assert self.env.state is not None
        return self.env.kind.from_jax(self.env.state.length).clone()

    @episode_length_buf.setter
    def episode_length_buf(self, lengths: torch.Tensor) -> None:
        if tuple(lengths.shape) != (self.num_envs,):
            raise ValueError(f"episode_length_buf has shape {tuple(lengths.shape)}; give one of ({self.num_envs},)")
        assert self.env.state is not None
        own = lengths.to(self.device, torch.int32, copy=True)
        self.env.state = self.env.state._replace(length=jax.dlpack.from_dlpack(own))

    def reset(self) -> TensorDict:
        """Start new episodes in all worlds, and return the observations."""
        self._observation, _ = self.env.reset()
        return self.get_observations()

    def get_observations(self) -> TensorDict:
        """The latest observations, (num_envs, size) under "policy"."""
        return TensorDict({"policy": self._observation}, batch_size=[self.num_envs], device=self.device)

    def step(self, actions: torch.Tensor) -> tuple[TensorDict, torch.Tensor, torch.Tensor, dict[str, Any]]:
        """Step all worlds.

        Args:
            actions: (num_envs, num_actions).

        Returns:
            Observations, which are those of the new episodes where one started; rewards (num_envs,); whether episodes
            ended (num_envs,) bool; and extras: "time_outs" (num_envs,) bool tells which of them the limit ended, and
            "log" has the mean over the worlds of each number that the task reports, under "step/" and its name.

        Raises:
            TypeError: the actions are no tensor, or on another device.
            ValueError: the actions have the wrong shape.
        """
        if self._limits is not None and isinstance(actions, torch.Tensor):
            actions = actions.clamp(*self._limits)
        self._observation, reward, terminated, truncated, infos = self.env.step(actions)
        statistics = ("episode", "_episode", "final_obs", "_final_obs")
        log = {f"step/{name}": value.float().mean() for name, value in infos.items() if name not in statistics}
        extras = {"time_outs": truncated & ~terminated, "log": log}
        return self.get_observations(), reward, terminated | truncated, extras

    def close(self) -> None:
        """Close the environment."""
        self.env.close()
