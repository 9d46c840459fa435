"""`StableBaselinesVecEnv`: many worlds as one `VecEnv` of Stable-Baselines3."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Any

import jax
import numpy as np

from simengine_envs.actions import checked_actions
from simengine_envs.adapters.making import batch_env
from simengine_envs.adapters.missing import missing
from simengine_envs.task import Task
from simengine_envs.vector import BatchEnv

try:
    from stable_baselines3.common.monitor import Monitor
    from stable_baselines3.common.vec_env import VecEnv
except ImportError as error:
    raise missing("Stable-Baselines3", "sb3", error) from error

Indices = int | Iterable[int] | None


class StableBaselinesVecEnv(VecEnv):
    """A task in many worlds, for the algorithms of Stable-Baselines3.

    A world whose episode ends starts the next one in the same step. Its info then has "terminal_observation", the last
    observation of the episode, and "episode", what `Monitor` reports: return "r", length "l" and time "t" [s]. Every
    info has "TimeLimit.truncated". Observations and rewards are NumPy arrays in the engine's precision.

    Args:
        env: id of an environment, such as "simengine/Ant-v5"; or the class of a task; or a `BatchEnv` with
            `array="jax"` and `autoreset_mode=AutoresetMode.SAME_STEP`.
        num_envs: number of worlds; one if it is not given.
        seed: seed of world 0 at the first reset, while world i gets `seed + i`; None for random seeds.
        step_infos: whether all infos have what the task reports. Otherwise only those of episodes that end have it,
            which saves time with thousands of worlds.
        **arguments: as for `BatchEnv`.

    Raises:
        TypeError: an argument is unknown, or the environment is of another kind.
        ValueError: an argument is out of its range, or there is no such id.
        simengine.errors.BackendError: the backend is not available.
    """

    def __init__(
        self,
        env: str | type[Task] | BatchEnv,
        num_envs: int | None = None,
        seed: int | None = None,
        step_infos: bool = True,
        **arguments: Any,
    ):
        self.env = batch_env(env, num_envs, "jax", **arguments)
        self._step_infos = step_infos
        self._actions: Any = None
        self._began = time.monotonic()
        super().__init__(self.env.num_envs, self.env.single_observation_space, self.env.single_action_space)
        if seed is not None:
            self.seed(seed)

    # ------------------------------------------------------------------------------------------------ steps

    def reset(self) -> np.ndarray:
        """Start new episodes in all worlds, and return the observations (num_envs, size).

        `reset_infos` then has what the task reports.

        Raises:
            ValueError: options were set, and environments of simengine have none.
        """
        if any(self._options):
            raise ValueError("environments of simengine take no options at a reset; give them as arguments when made")
        seeded = self._seeds[0] is not None
        observation, infos = jax.device_get(self.env.reset(seed=list(self._seeds) if seeded else None))
        self._reset_seeds()
        self._reset_options()
        self.reset_infos = _rows(infos, range(self.num_envs))
        return np.array(observation)

    def step_async(self, actions: np.ndarray) -> None:
        """Take the actions (num_envs, action size) of the next step. Raises ValueError if they are wrong."""
        checked = checked_actions(actions, self.env.action_space.shape or (), type(self.env.task).__name__)
        with self.env.runner.scope():
            self._actions = jax.device_put(checked.astype(self.env.runner.dtype), self.env.runner.device)

    def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """Step all worlds.

        Returns:
            Observations (num_envs, size), which are those of the new episodes where one started; rewards (num_envs,);
            whether episodes ended (num_envs,) bool; and the info of each world.
        """
        observation, reward, terminated, truncated, infos = jax.device_get(self.env.step(self._actions))
        return (
            np.array(observation),
            np.array(reward),
            terminated | truncated,
            self._infos(terminated, truncated, infos),
        )

    def _infos(self, terminated: np.ndarray, truncated: np.ndarray, infos: dict[str, Any]) -> list[dict[str, Any]]:
        episode, final = infos.pop("episode"), infos.pop("final_obs")
        values = {name: value for name, value in infos.items() if name not in ("_episode", "_final_obs")}
        ended = np.flatnonzero(terminated | truncated)
        if self._step_infos:
            rows = _rows(values, range(self.num_envs))
        else:
            rows = [{} for _ in range(self.num_envs)]
            for world, row in zip(ended, _rows(values, ended), strict=True):
                rows[world] = row
        for row, late in zip(rows, (truncated & ~terminated).tolist(), strict=True):
            row["TimeLimit.truncated"] = late
        passed = round(time.monotonic() - self._began, 6)
        for world in ended:
            rows[world]["terminal_observation"] = final[world].copy()
            rows[world]["episode"] = {"r": float(episode["r"][world]), "l": int(episode["l"][world]), "t": passed}
        return rows

    def close(self) -> None:
        """Close the environment."""
        self.env.close()

    def get_images(self) -> Sequence[np.ndarray | None]:
        """A picture of each world."""
        return self.env.render()

    # ------------------------------------------------------------------------------------------------ attributes

    def get_attr(self, attr_name: str, indices: Indices = None) -> list[Any]:
        """An attribute of the `BatchEnv`, once for each world. Raises AttributeError if it has none of this name."""
        return [getattr(self.env, attr_name)] * len(self._worlds(indices))

    def set_attr(self, attr_name: str, value: Any, indices: Indices = None) -> None:
        """Set an attribute of the `BatchEnv`, which all worlds share. Raises ValueError for some worlds only."""
        if len(set(self._worlds(indices))) < self.num_envs:
            raise ValueError(f"all worlds share the attribute {attr_name!r}; set it without indices")
        setattr(self.env, attr_name, value)

    def env_method(
        self, method_name: str, *method_args: Any, indices: Indices = None, **method_kwargs: Any
    ) -> list[Any]:
        """Call `set_params` for some worlds, or `render`, and return the result for each world.

        Raises:
            AttributeError: it is another method, which all worlds share; call it on the attribute `env`.
        """
        worlds = self._worlds(indices)
        if method_name == "set_params":
            self.env.set_params(worlds, *method_args, **method_kwargs)
            return [None] * len(worlds)
        if method_name == "render":
            images = self.env.render()
            return [images[world] for world in worlds]
        raise AttributeError(
            f"worlds have no method {method_name!r} of their own; call it on the attribute env instead"
        )

    def env_is_wrapped(self, wrapper_class: type[Any], indices: Indices = None) -> list[bool]:
        """Whether worlds report what a wrapper adds. They do for `Monitor`, since infos have "episode"."""
        return [wrapper_class is Monitor] * len(self._worlds(indices))

    def _worlds(self, indices: Indices) -> list[int]:
        return [int(world) for world in self._get_indices(indices)]


def _rows(values: dict[str, np.ndarray], worlds: Iterable[int]) -> list[dict[str, Any]]:
    """The values (num_envs, ...) of some worlds, a dictionary for each. Those of shape (num_envs,) become numbers."""
    chosen = list(worlds)
    columns = [array[chosen].tolist() if array.ndim == 1 else list(array[chosen]) for array in values.values()]
    return (
        [dict(zip(values, row, strict=True)) for row in zip(*columns, strict=True)] if columns else [{} for _ in chosen]
    )
