"""`SingleEnv`: any task in one world, as a `gymnasium.Env`."""

from __future__ import annotations

from typing import Any, ClassVar

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.error import ResetNeeded

from simengine_envs.actions import checked_actions
from simengine_envs.rendering import RENDER_MODES, Renderer, RenderOptions
from simengine_envs.task import Task
from simengine_envs.worlds import EngineOptions, Worlds, read

ONLY_WORLD = np.zeros(1, dtype=np.int64)


def split_arguments(arguments: dict[str, Any]) -> tuple[dict[str, Any], EngineOptions, RenderOptions]:
    """Split arguments by their names into those of the task, of the engine and of rendering.

    Args:
        arguments: all arguments by name. Those of the engine and of rendering are removed from it.

    Returns:
        The arguments of the task, the options of the engine, and the options of rendering.
    """
    engine = {name: arguments.pop(name) for name in EngineOptions._fields if name in arguments}
    render = {name: arguments.pop(name) for name in RenderOptions._fields if name in arguments}
    return arguments, EngineOptions(**engine), RenderOptions(**render)


def make_spaces(worlds: Worlds) -> tuple[spaces.Box, spaces.Box]:
    """The observation space (float64) and the action space (float32) of one world, as in Gymnasium's environments."""
    structure = worlds.task.observation_structure(worlds.model)
    size = sum(length for name, length in structure.items() if not name.startswith("skipped_"))
    low, high = worlds.model.mj.actuator_ctrlrange.astype(np.float32).T
    return spaces.Box(-np.inf, np.inf, (size,), np.float64), spaces.Box(low, high, dtype=np.float32)


class SingleEnv(gymnasium.Env, gymnasium.utils.EzPickle):
    """A task in one world. A subclass names the task.

    Observations and rewards are float64, like Gymnasium's, whatever the dtype of the engine. On one machine, a world of
    a vector environment gives the same bits with the backends "host" and "cuda". With "jax" the rounding depends on the
    number of worlds.

    Args:
        render_mode: None, "human", "rgb_array", "depth_array" or "rgbd_tuple".
        **arguments: arguments of the task; `backend`, `executor` and `dtype` of the engine (`EngineOptions`); `width`,
            `height`, `camera_id`, `camera_name`, `max_geom` and `visual_options` of rendering (`RenderOptions`).

    Raises:
        TypeError: an argument is unknown.
        ValueError: an argument is out of its range.
        FileNotFoundError: there is no such model file.
        simengine.errors.BackendError: the backend is not available.
    """

    task_type: ClassVar[type[Task]]
    metadata: dict[str, Any] = {"render_modes": list(RENDER_MODES)}  # noqa: RUF012 (gymnasium declares it mutable)

    def __init__(self, *, render_mode: str | None = None, **arguments: Any):
        gymnasium.utils.EzPickle.__init__(self, render_mode=render_mode, **arguments)
        task_arguments, engine, render = split_arguments(dict(arguments))
        task = self.task_type(**task_arguments)
        self.renderer = Renderer(task, render_mode, render)
        self.render_mode = render_mode
        self.worlds = Worlds(task, 1, engine)
        self.observation_space, self.action_space = make_spaces(self.worlds)
        self.observation_structure = self.worlds.task.observation_structure(self.worlds.model)
        self.metadata = {**type(self).metadata, "render_fps": round(1 / self.worlds.dt)}
        self._started = False

    @property
    def model(self) -> Any:
        """MuJoCo's `MjModel`, to read from. To change parameters, see `set_params`."""
        return self.worlds.model.mj

    @property
    def dt(self) -> float:
        """Duration of an environment step [s]."""
        return self.worlds.dt

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Start an episode.

        Args:
            seed: seeds the random generator; None goes on with it.
            options: not used.

        Returns:
            The observation (size,) float64, and the info.
        """
        super().reset(seed=seed)
        observations, info = self.worlds.reset(ONLY_WORLD, [self.np_random])
        self._started = True
        if self.render_mode == "human":
            self.render()
        return observations[0], {key: value[0] for key, value in info.items()}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Step once.

        Args:
            action: (nu,).

        Returns:
            Observation (size,) float64, reward, terminated, truncated and info. Truncated is always false, since
            Gymnasium's wrapper `TimeLimit` truncates episodes.

        Raises:
            ValueError: the action has the wrong shape or an entry that is not finite.
            gymnasium.error.ResetNeeded: the environment has not been reset.
        """
        if not self._started:
            raise ResetNeeded(f"{type(self).__name__}.step() came before the first reset(); call reset() first")
        checked = checked_actions(action, (self.worlds.model.nu,), type(self).__name__)
        observations, outcome = self.worlds.step(checked[None])
        if self.render_mode == "human":
            self.render()
        info = {key: value[0] for key, value in outcome.info.items()}
        return observations[0], outcome.reward[0], bool(outcome.terminated[0]), False, info

    def state_vector(self) -> np.ndarray:
        """`qpos` and `qvel` in one array, (nq + nv,) float64."""
        return np.concatenate([read(self.worlds.simulation, name)[0] for name in ("qpos", "qvel")])

    def set_state(self, qpos: np.ndarray, qvel: np.ndarray) -> None:
        """Set the state of the world to `qpos` (nq,) and `qvel` (nv,), with zero time and controls."""
        self.worlds.set_state(ONLY_WORLD, np.asarray(qpos)[None], np.asarray(qvel)[None])
        self._started = True

    def set_params(self, **params: Any) -> None:
        """Change parameters of the model, such as masses and frictions. A reset does not change them.

        Args:
            params: values under MuJoCo's names and in MuJoCo's shapes; see `simengine.Simulation.set_params`.

        Raises:
            ValueError: as `simengine.Simulation.set_params`.
        """
        self.worlds.set_params(**params)

    def render(self) -> Any:
        """Draw the world in the render mode of the environment; see `Renderer.render`."""
        simulation = self.worlds.simulation
        qpos, qvel = (read(simulation, name)[0] for name in ("qpos", "qvel"))
        return self.renderer.render(qpos, qvel, float(simulation.time[0]))

    def close(self) -> None:
        """Release the simulation and close the window. A second call does nothing."""
        self.renderer.close()
        self.worlds.close()
