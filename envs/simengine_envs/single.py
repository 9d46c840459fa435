"""`SingleEnv`: any task as a `gymnasium.Env`, a batch of one world."""

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
    """Tell the arguments of the task, of the engine and of rendering apart, by their names."""
    engine = {name: arguments.pop(name) for name in EngineOptions._fields if name in arguments}
    render = {name: arguments.pop(name) for name in RenderOptions._fields if name in arguments}
    return arguments, EngineOptions(**engine), RenderOptions(**render)


def make_spaces(worlds: Worlds) -> tuple[spaces.Box, spaces.Box]:
    """Observation and action space of one world, as Gymnasium's MuJoCo environments have them."""
    structure = worlds.task.observation_structure(worlds.model)
    size = sum(length for name, length in structure.items() if not name.startswith("skipped_"))
    low, high = worlds.model.mj.actuator_ctrlrange.astype(np.float32).T
    return spaces.Box(-np.inf, np.inf, (size,), np.float64), spaces.Box(low, high, dtype=np.float32)


class SingleEnv(gymnasium.Env, gymnasium.utils.EzPickle):
    """A task in one world; a subclass names the task.

    Args:
        render_mode: None, "human", "rgb_array", "depth_array" or "rgbd_tuple".
        **arguments: those of the task; `backend`, `executor` and `dtype` of the engine (`EngineOptions`); `width`,
            `height`, `camera_id`, `camera_name`, `max_geom` and `visual_options` of rendering (`RenderOptions`).

    Observations and rewards are float64, as Gymnasium's, whatever the engine's dtype. A world of a vector environment
    gives bit for bit the same on the same machine with backend "host" or "cuda"; "jax" rounds by batch size.

    Raises:
        TypeError: an argument that nobody knows.
        ValueError: an argument out of its range.
        FileNotFoundError: no such model file.
        simengine.errors.BackendError: the backend is not there.
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
        """MuJoCo's model, as Gymnasium's environments have it; to change numbers of it, see `set_params`."""
        return self.worlds.model.mj

    @property
    def dt(self) -> float:
        """Duration of a step [s]."""
        return self.worlds.dt

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Start an episode; `options` are not used.

        Returns:
            The observation and the info, as `gymnasium.Env.reset`.
        """
        super().reset(seed=seed)
        observations, info = self.worlds.reset(ONLY_WORLD, [self.np_random])
        self._started = True
        if self.render_mode == "human":
            self.render()
        return observations[0], {key: value[0] for key, value in info.items()}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Step once under `action` (nu,).

        Returns:
            Observation, reward, terminated, truncated (always false: Gymnasium's wrapper keeps the time) and info.

        Raises:
            ValueError: wrong shape, or an entry that is not finite.
            gymnasium.error.ResetNeeded: before the first reset.
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
        """`qpos` and `qvel` in one, (nq + nv,), float64."""
        return np.concatenate([read(self.worlds.simulation, name)[0] for name in ("qpos", "qvel")])

    def set_state(self, qpos: np.ndarray, qvel: np.ndarray) -> None:
        """Put the world at `qpos` (nq,) and `qvel` (nv,), with zero time and controls."""
        self.worlds.set_state(ONLY_WORLD, np.asarray(qpos)[None], np.asarray(qvel)[None])
        self._started = True

    def set_params(self, **params: Any) -> None:
        """Change parameters of the model, such as masses and frictions; they stay through resets.

        Args:
            params: by MuJoCo's names and in its shapes; see `simengine.Simulation.set_params`.

        Raises:
            ValueError: as `simengine.Simulation.set_params`.
        """
        self.worlds.set_params(**params)

    def render(self) -> Any:
        """Draw the world as `render_mode` says; see `Renderer.render`."""
        simulation = self.worlds.simulation
        qpos, qvel = (read(simulation, name)[0] for name in ("qpos", "qvel"))
        return self.renderer.render(qpos, qvel, float(simulation.time[0]))

    def close(self) -> None:
        """Release the simulation and close the window; a second call does nothing."""
        self.renderer.close()
        self.worlds.close()
