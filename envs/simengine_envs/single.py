"""`SingleEnv`: any task in one world, as a `gymnasium.Env`."""

from __future__ import annotations

from typing import Any

import gymnasium
import jax
import numpy as np
from gymnasium.error import ResetNeeded

from simengine_envs.actions import checked_actions
from simengine_envs.autoreset import AutoresetMode
from simengine_envs.options import split_arguments
from simengine_envs.rendering import RENDER_MODES, Renderer
from simengine_envs.runner import Runner
from simengine_envs.task import Task


class SingleEnv(gymnasium.Env, gymnasium.utils.EzPickle):
    """A task in one world.

    Observations and rewards are float64, like Gymnasium's, whatever the dtype of the engine. A world of a vector
    environment with the same seed gives the same numbers.

    Args:
        task: the class of the task, or "module:Class".
        render_mode: None, "human", "rgb_array", "depth_array" or "rgbd_tuple".
        **arguments: arguments of the task; `backend` and `dtype` of the engine (`EngineOptions`); `width`, `height`,
            `camera_id`, `camera_name`, `max_geom` and `visual_options` of rendering (`RenderOptions`).

    Raises:
        TypeError: an argument is unknown.
        ValueError: an argument is out of its range.
        FileNotFoundError: there is no such model file.
        simengine.errors.BackendError: the backend is not available.
    """

    metadata: dict[str, Any] = {"render_modes": list(RENDER_MODES)}  # noqa: RUF012 (gymnasium declares it mutable)

    def __init__(self, task: str | type[Task], *, render_mode: str | None = None, **arguments: Any):
        gymnasium.utils.EzPickle.__init__(self, task, render_mode=render_mode, **arguments)
        made, engine, render = split_arguments(task, arguments)
        self.task = made
        self.renderer = Renderer(made, render_mode, render)
        self.render_mode = render_mode
        self.runner = Runner(made, 1, engine, None, AutoresetMode.DISABLED)
        self.observation_space, self.action_space = self.runner.spaces(np.float64)
        self.observation_structure = made.observation_structure(self.runner.env.model)
        self.metadata = {**type(self).metadata, "render_fps": round(1 / self.dt)}
        self._started = False

    @property
    def model(self) -> Any:
        """MuJoCo's `MjModel`, to read from. To change parameters, see `set_params`."""
        return self.runner.env.model.mj

    @property
    def dt(self) -> float:
        """Duration of an environment step [s]."""
        return self.runner.env.dt

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Start an episode.

        Args:
            seed: seeds the random numbers; None goes on to the next episode of the present seed.
            options: not used.

        Returns:
            The observation (size,) float64, and the info.
        """
        super().reset(seed=seed)
        if seed is not None or self.runner.state is None:
            chosen = self.np_random.integers(2**32) if seed is None else seed
            observation = self.runner.reset(np.array([chosen % 2**32]))
        else:
            observation = self.runner.restart(np.ones(1, bool))
        self._started = True
        if self.render_mode == "human":
            self.render()
        return _host(observation), {key: _entry(value) for key, value in self.runner.info().items()}

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
            simengine.errors.BackendError: the world stood still since the memory for contacts was full.
        """
        if not self._started:
            raise ResetNeeded(f"{self._name}.step() came before the first reset(); call reset() first")
        checked = checked_actions(action, self.action_space.shape or (), self._name)
        result = jax.block_until_ready(self.runner.step(checked[None].astype(self.runner.dtype)))
        self.runner.look_for_errors()
        if self.render_mode == "human":
            self.render()
        info = {key: _entry(value) for key, value in result.info.items()}
        return _host(result.observation), float(result.reward[0]), bool(result.terminated[0]), False, info

    @property
    def _name(self) -> str:
        return type(self.task).__name__

    def state_vector(self) -> np.ndarray:
        """`qpos` and `qvel` in one array, (nq + nv,) float64."""
        return np.concatenate([self.runner.host(name)[0] for name in ("qpos", "qvel")])

    def set_state(self, qpos: np.ndarray, qvel: np.ndarray) -> None:
        """Set the state of the world to `qpos` (nq,) and `qvel` (nv,), with zero time and controls.

        Raises:
            ValueError: an array has the wrong shape, or is not finite.
        """
        model = self.runner.env.model
        given = []
        for name, value, size in (("qpos", qpos, model.nq), ("qvel", qvel, model.nv)):
            array = np.asarray(value, np.float64)
            if array.shape != (size,) or not np.isfinite(array).all():
                raise ValueError(f"set_state takes finite {name} of shape ({size},), not an array of {array.shape}")
            given.append(array[None])
        self.runner.place(*given)
        self._started = True

    def set_params(self, **params: Any) -> None:
        """Change parameters of the model, such as masses and frictions. A reset does not change them.

        Args:
            params: values under MuJoCo's names and in MuJoCo's shapes; see `simengine.Simulation.set_params`.

        Raises:
            ValueError: as `simengine.Simulation.set_params`.
        """
        self.runner.set_params(None, params)

    def warnings(self) -> dict[str, int]:
        """How often the world blew up since the environment was made; see `BatchEnv.warnings`."""
        return self.runner.flagged.by_stage()

    def render(self) -> Any:
        """Draw the world in the render mode of the environment; see `Renderer.render`."""
        qpos, qvel = (self.runner.host(name)[0] for name in ("qpos", "qvel"))
        return self.renderer.render(qpos, qvel, self.runner.times()[0])

    def close(self) -> None:
        """Close the window. A second call does nothing."""
        self.renderer.close()


def _host(observation: Any) -> np.ndarray:
    return np.asarray(observation)[0].astype(np.float64)


def _entry(value: Any) -> Any:
    entry = np.asarray(value)[0]
    return entry.astype(np.float64) if entry.dtype == np.float32 else entry
