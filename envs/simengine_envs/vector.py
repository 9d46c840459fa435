"""`BatchEnv`: any task in many worlds, as a `gymnasium.vector.VectorEnv` with arrays of NumPy, JAX, PyTorch or CuPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.vector import VectorEnv
from gymnasium.vector.utils import batch_space

from simengine_envs.actions import checked_actions, checked_device_actions
from simengine_envs.arrays import array_kind
from simengine_envs.autoreset import AutoresetMode, check_gymnasium
from simengine_envs.choices import autoreset_mode_of, whole_number
from simengine_envs.infos import add_final, add_info
from simengine_envs.options import split_arguments
from simengine_envs.pure import PureEnv
from simengine_envs.rendering import GRID, VECTOR_MODES, Renderer
from simengine_envs.results import EnvState, StepResult
from simengine_envs.runner import Runner
from simengine_envs.seeds import Seeds, reset_mask
from simengine_envs.task import Task
from simengine_envs.tiling import MOST_DRAWN, drawn_worlds, tiled


class BatchEnv(VectorEnv):
    """A task in `num_envs` worlds.

    With `array="numpy"` it behaves like `gymnasium.vector.SyncVectorEnv` over single environments, in each of the three
    autoreset modes, and observations and rewards are float64. With "jax", "torch" or "cupy" actions, observations,
    rewards and infos are arrays on the device, in the engine's precision. No call waits for a GPU. The numbers are the
    same for every kind of arrays; for the number of worlds see `PureEnv`.

    Args:
        task: the class of the task, or "module:Class".
        num_envs: number of worlds.
        array: kind of the arrays: "numpy", "jax", "torch" or "cupy".
        autoreset_mode: when a new episode starts after one has ended. With `AutoresetMode.NEXT_STEP` it starts in the
            next step, whose action is not used and whose reward is zero. With `SAME_STEP` it starts in the same step,
            and `infos["final_obs"]` and `infos["final_info"]` have the last observation and info. With `DISABLED` it
            starts when the caller calls `reset(options={"reset_mask": mask})`.
        max_episode_steps: steps after which an episode is truncated; None or -1 for no limit.
        render_mode: None, "rgb_array", "depth_array" or "rgbd_tuple", for a picture of each world; or "rgb_array_grid"
            for one picture of many worlds.
        grid_worlds: most worlds of such a grid, 25 if None. Of more worlds some are drawn that are spread evenly.
        **arguments: as for `SingleEnv`.

    Raises:
        TypeError: an argument is unknown.
        ValueError: an argument is out of its range.
        ImportError: the library of the arrays is not installed, or Gymnasium is too old for vector environments.
        FileNotFoundError: there is no such model file.
        simengine.errors.BackendError: the backend is not available.
    """

    metadata: dict[str, Any] = {"render_modes": list(VECTOR_MODES)}  # noqa: RUF012 (gymnasium declares it mutable)

    runner_type: type[Runner] = Runner

    def __init__(
        self,
        task: str | type[Task],
        num_envs: int = 1,
        *,
        array: str = "numpy",
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        max_episode_steps: int | None = None,
        render_mode: str | None = None,
        grid_worlds: int | None = None,
        **arguments: Any,
    ):
        check_gymnasium()
        num_envs = whole_number("num_envs", num_envs, 1)
        if render_mode == "human":
            raise ValueError("a vector environment has no window; use render_mode='rgb_array' or a single environment")
        if grid_worlds is not None and (grid_worlds < 1 or render_mode != GRID):
            raise ValueError(
                f"grid_worlds is {grid_worlds}; give at least 1, and render_mode={GRID!r}, or leave it out"
            )
        self._grid_worlds = MOST_DRAWN if grid_worlds is None else grid_worlds
        self.kind = array_kind(array)
        self.autoreset_mode = autoreset_mode_of(autoreset_mode)
        made, engine, render = split_arguments(task, arguments)
        self.task = made
        self.renderer = Renderer(made, render_mode, render, VECTOR_MODES)
        self.render_mode = render_mode
        self.num_envs = num_envs
        self.runner = self.runner_type(made, num_envs, engine, max_episode_steps, self.autoreset_mode)
        if array == "cupy" and self.runner.device.platform == "cpu":
            raise ValueError(
                f"array='cupy' needs arrays on a GPU, and backend {self.runner.backend!r} has them on the CPU"
            )
        self._on_host = array == "numpy"
        observation_space, action_space = self.runner.spaces(np.float64 if self._on_host else self.runner.dtype)
        self.single_observation_space, self.single_action_space = observation_space, action_space
        self.observation_space = batch_space(observation_space, num_envs)
        self.action_space = batch_space(action_space, num_envs)
        self.observation_structure = made.observation_structure(self.pure.model)
        self.metadata = {
            **type(self).metadata,
            "render_fps": round(1 / self.dt),
            "autoreset_mode": self.autoreset_mode,
        }
        self._seeds = Seeds(num_envs)
        self._ended = np.zeros(num_envs, dtype=bool)

    @property
    def pure(self) -> PureEnv:
        """The same task as pure functions of JAX."""
        return self.runner.env

    @property
    def state(self) -> EnvState | None:
        """The state of all worlds, for the functions of `pure`; None before the first reset. It may be assigned."""
        return self.runner.state

    @state.setter
    def state(self, state: EnvState) -> None:
        self.runner.state = state

    @property
    def model(self) -> Any:
        """MuJoCo's `MjModel`, to read from. To change parameters, see `set_params`."""
        return self.pure.model.mj

    @property
    def dt(self) -> float:
        """Duration of an environment step [s]."""
        return self.pure.dt

    @property
    def np_random_seed(self) -> tuple[int, ...]:  # type: ignore[override]
        """The seed of every world."""
        return tuple(self._seeds.values.tolist())

    # ------------------------------------------------------------------------------------------------ reset

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start episodes in all worlds, or in those for which `options["reset_mask"]` is true.

        Args:
            seed: seed of world 0, while world i gets `seed + i`; or a list with a seed or None for each world. A world
                without a seed goes on to its next episode.
            options: may hold "reset_mask", (num_envs,) bool with at least one true entry.

        Returns:
            The observations of all worlds, (num_envs, size), and the infos of the worlds that were reset.

        Raises:
            TypeError: the mask is not a boolean array.
            ValueError: the mask or the list of seeds has the wrong length, or the mask is all false.
        """
        mask = reset_mask(options, self.num_envs)
        first = self.runner.state is None
        seeded = self._seeds.take(seed, mask, first)
        if first:
            observation = self.runner.reset(self._seeds.values)
        else:
            if seeded.any():
                observation = self.runner.reseed(self._seeds.values, seeded)
            if (mask & ~seeded).any():
                observation = self.runner.restart(mask & ~seeded)
        self._ended[mask] = False
        info = self.runner.info()
        if not self._on_host:
            return self.kind.from_jax(observation), self._given(info)
        infos: dict[str, Any] = {}
        add_info(infos, _host_values(info), mask)
        return np.asarray(observation).astype(np.float64), infos

    # ------------------------------------------------------------------------------------------------ step

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Step every world. `autoreset_mode` decides when a world whose episode has ended starts a new one.

        Args:
            actions: (num_envs, action size), an array of the environment's kind.

        Returns:
            Observations (num_envs, size), rewards (num_envs,), terminations (num_envs,) bool, truncations (num_envs,)
            bool, and infos.

        Raises:
            TypeError: the actions are arrays of another kind or on another device.
            ValueError: the actions have the wrong shape, or an entry on the host that is used is not finite.
            gymnasium.error.ResetNeeded: a world has not been reset, or its episode has ended and autoreset is disabled.
            simengine.errors.BackendError: worlds stood still since the memory for contacts was full, in this step or,
                with arrays on a device, in one before.
        """
        if self.runner.state is None:
            raise ResetNeeded(f"{self._name}.step() came before the first reset(); call reset() first")
        return self._step_host(actions) if self._on_host else self._step_device(actions)

    @property
    def _name(self) -> str:
        return type(self.task).__name__

    def _step_device(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        shape = self.action_space.shape or ()
        checked = checked_device_actions(actions, shape, self._name, self.kind, self.runner.device)
        result = self.runner.step(checked)
        give = self.kind.from_jax
        return (
            *(give(result.observation), give(result.reward), give(result.terminated), give(result.truncated)),
            self._infos(result),
        )

    def _infos(self, result: StepResult) -> dict[str, Any]:
        """Infos on the device: those of the task, episode statistics, and with SAME_STEP the last observations."""
        give, ended = self.kind.from_jax, result.terminated | result.truncated
        infos = self._given(result.info)
        infos["episode"] = {"r": give(result.episode_return), "l": give(result.episode_length)}
        infos["_episode"] = give(ended)
        if self.autoreset_mode == AutoresetMode.SAME_STEP:
            infos |= {"final_obs": give(result.final_observation), "_final_obs": infos["_episode"]}
        return infos

    def _given(self, values: dict[str, jax.Array]) -> dict[str, Any]:
        return {name: self.kind.from_jax(value) for name, value in values.items()}

    def _step_host(self, actions: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        mode, restarting = self.autoreset_mode, self._ended.copy()
        if mode == AutoresetMode.DISABLED and restarting.any():
            raise ResetNeeded(
                f"the episode of world {np.flatnonzero(restarting)[0]} has ended and autoreset is disabled; call "
                "reset(options={'reset_mask': terminations | truncations}) before the next step()"
            )
        checked = checked_actions(actions, self.action_space.shape or (), self._name, used=~restarting)
        result: Any = jax.device_get(self.runner.step(checked.astype(self.runner.dtype)))
        self.runner.look_for_errors()
        ended = result.terminated | result.truncated
        values, infos = _host_values(result.info), dict[str, Any]()
        if mode == AutoresetMode.SAME_STEP:
            self._ended[...] = False
            add_final(infos, result.final_observation.astype(np.float64), values, ended)
            add_info(infos, values, ~ended)
            if ended.any():
                add_info(infos, _host_values(self.runner.info()), ended)
        else:
            self._ended = ended.copy()
            add_info(infos, values, ~restarting)
            if restarting.any():
                add_info(infos, _host_values(self.runner.info()), restarting)
        rewards = result.reward.astype(np.float64)
        ends = result.terminated.copy(), result.truncated.copy()  # JAX gives arrays that cannot be written
        return result.observation.astype(np.float64), rewards, *ends, infos

    # ------------------------------------------------------------------------------------------------ others

    def set_params(self, worlds: Any = None, **params: Any) -> None:
        """Set parameters of some worlds, such as masses and frictions. A reset does not change them.

        Args:
            worlds: None for all worlds, a boolean mask (num_envs,), or indices.
            params: values under MuJoCo's names and in MuJoCo's shapes, with or without a first axis for the worlds; see
                `simengine.Simulation.set_params`.

        Raises:
            ValueError: as `simengine.Simulation.set_params`.
        """
        self.runner.set_params(worlds, params)

    def warnings(self) -> dict[str, int]:
        """How often worlds blew up since the environment was made, by the stage that found the number.

        A number that is not finite or beyond 1e10 ends the episode; the stages are those of `simengine.Group.warnings`.
        It waits for the steps so far. Those of `pure` are not among them: there `StepResult.flagged` tells.
        """
        return self.runner.flagged.by_stage()

    def render(self) -> Any:
        """Draw the worlds in the render mode of the environment.

        Returns:
            A tuple with a picture of each world; see `Renderer.render`. In mode "rgb_array_grid" one picture
            (rows * height, columns * width, 3) uint8, with world 0 at the upper left and world 1 to its right.
        """
        if self.render_mode == GRID:
            return tiled(self._pictures(drawn_worlds(self.num_envs, self._grid_worlds)))
        return tuple(self._pictures(range(self.num_envs)))

    def _pictures(self, worlds: Sequence[int]) -> list[Any]:
        qpos, qvel = (self.runner.host(name) for name in ("qpos", "qvel"))
        times = self.runner.times()
        return [self.renderer.render(qpos[world], qvel[world], times[world]) for world in worlds]

    def close_extras(self, **kwargs: Any) -> None:
        """Close the renderer."""
        self.renderer.close()


def _host_values(values: dict[str, Any]) -> dict[str, np.ndarray]:
    arrays = {name: np.asarray(value) for name, value in values.items()}
    return {name: a.astype(np.float64) if a.dtype == np.float32 else a for name, a in arrays.items()}
