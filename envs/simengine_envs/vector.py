"""`BatchEnv`: any task in many worlds of one simulation, as a `gymnasium.vector.VectorEnv`."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from simengine_envs.actions import checked_actions
from simengine_envs.infos import add_final, add_info, spread
from simengine_envs.rendering import RENDER_MODES, Renderer
from simengine_envs.seeds import Generators, reset_mask
from simengine_envs.single import make_spaces, split_arguments
from simengine_envs.task import Outcome, Task
from simengine_envs.worlds import Worlds, read

StepResult = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]


class BatchEnv(VectorEnv):
    """A task in `num_envs` worlds. A subclass names the task.

    It behaves like `gymnasium.vector.SyncVectorEnv` over the single environments, in each of the three autoreset modes.
    The same seeds give the same observations, rewards, terminations, truncations and infos. They are equal bit for bit
    with the backends "host" and "cuda". With "jax" the rounding depends on the number of worlds.

    Observations (num_envs, size) and rewards (num_envs,) are float64 NumPy arrays, and new ones in each call.

    Args:
        num_envs: number of worlds.
        autoreset_mode: when a new episode starts after one has ended. With `AutoresetMode.NEXT_STEP` it starts in the
            next step, whose action is not used and whose reward is zero. With `SAME_STEP` it starts in the same step,
            and `infos["final_obs"]` and `infos["final_info"]` have the last observation and info. With `DISABLED` it
            starts when the caller calls `reset(options={"reset_mask": mask})`.
        max_episode_steps: steps after which an episode is truncated; None or -1 for no limit.
        render_mode: None, "rgb_array", "depth_array" or "rgbd_tuple".
        **arguments: as for `SingleEnv`.

    Raises:
        TypeError: an argument is unknown.
        ValueError: an argument is out of its range.
        FileNotFoundError: there is no such model file.
        simengine.errors.BackendError: the backend is not available.
    """

    task_type: ClassVar[type[Task]]
    # A vector environment opens no windows, so it has no mode "human".
    metadata: dict[str, Any] = {"render_modes": [mode for mode in RENDER_MODES if mode != "human"]}  # noqa: RUF012

    def __init__(
        self,
        num_envs: int = 1,
        *,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        max_episode_steps: int | None = None,
        render_mode: str | None = None,
        **arguments: Any,
    ):
        if num_envs < 1:
            raise ValueError(f"num_envs must be at least 1, not {num_envs}")
        if max_episode_steps is not None and max_episode_steps < 1 and max_episode_steps != -1:
            raise ValueError(f"max_episode_steps must be positive, or None or -1 for no limit, not {max_episode_steps}")
        if render_mode == "human":
            raise ValueError("a vector environment has no window; use render_mode='rgb_array' or a single environment")
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        task_arguments, engine, render = split_arguments(arguments)
        task = self.task_type(**task_arguments)
        self.renderer = Renderer(task, render_mode, render)
        self.render_mode = render_mode
        self.num_envs = num_envs
        self.worlds = Worlds(task, num_envs, engine)
        observation_space, action_space = make_spaces(self.worlds)
        self.single_observation_space, self.single_action_space = observation_space, action_space
        self.observation_space = batch_space(observation_space, num_envs)
        self.action_space = batch_space(action_space, num_envs)
        self.observation_structure = self.worlds.task.observation_structure(self.worlds.model)
        self.metadata = {
            **type(self).metadata,
            "render_fps": round(1 / self.worlds.dt),
            "autoreset_mode": self.autoreset_mode,
        }
        self._generators = Generators(num_envs)
        self._limit = np.inf if max_episode_steps in (None, -1) else max_episode_steps
        self._elapsed = np.zeros(num_envs, dtype=np.int64)
        self._started = np.zeros(num_envs, dtype=bool)
        self._ended = np.zeros(num_envs, dtype=bool)
        self._observations = np.zeros((num_envs, *observation_space.shape))

    @property
    def model(self) -> Any:
        """MuJoCo's `MjModel`, to read from. To change parameters, see `set_params`."""
        return self.worlds.model.mj

    @property
    def dt(self) -> float:
        """Duration of an environment step [s]."""
        return self.worlds.dt

    # As in SyncVectorEnv, there is a generator for each world, while the base class has a single one.
    @property  # type: ignore[misc]
    def np_random(self) -> tuple[np.random.Generator, ...]:  # type: ignore[override]
        """The random generators, one for each world."""
        return tuple(self._generators.at(np.arange(self.num_envs)))

    @property
    def np_random_seed(self) -> tuple[int, ...]:  # type: ignore[override]
        """The seeds of the generators."""
        return self._generators.seeds()

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Start episodes in all worlds, or in those for which `options["reset_mask"]` is true.

        Args:
            seed: seed of world 0, while world i gets `seed + i`; or a list with a seed or None for each world. A world
                with None goes on with its generator.
            options: may hold "reset_mask", (num_envs,) bool with at least one true entry.

        Returns:
            The observations of all worlds, (num_envs, size), and the infos of the worlds that were reset.

        Raises:
            TypeError: the mask is not a boolean array.
            ValueError: the mask or the list of seeds has the wrong length, or the mask is all false.
        """
        mask = reset_mask(options, self.num_envs)
        self._generators.seed(seed, mask)
        infos: dict[str, Any] = {}
        self._reset_worlds(mask, infos)
        self._ended[mask] = False
        return self._observations.copy(), infos

    def _reset_worlds(self, mask: np.ndarray, infos: dict[str, Any]) -> None:
        """Reset the worlds for which the mask (num_envs,) is true, and store their observations and infos."""
        if not mask.any():
            return
        worlds = np.flatnonzero(mask)
        self._observations[worlds], info = self.worlds.reset(worlds, self._generators.at(worlds))
        self._elapsed[worlds] = 0
        self._started[worlds] = True
        add_info(infos, spread(info, worlds, self.num_envs), mask)

    def step(self, actions: Any) -> StepResult:
        """Step every world. `autoreset_mode` decides when a world whose episode has ended starts a new one.

        Args:
            actions: (num_envs, nu).

        Returns:
            Observations (num_envs, size), rewards (num_envs,), terminations (num_envs,) bool, truncations (num_envs,)
            bool, and infos.

        Raises:
            ValueError: the actions have the wrong shape, or an entry that is used is not finite.
            gymnasium.error.ResetNeeded: a world has not been reset, or its episode has ended and autoreset is disabled.
        """
        restarting = self._ended.copy()
        self._check_ready(restarting)
        checked = checked_actions(actions, (self.num_envs, self.worlds.model.nu), type(self).__name__, used=~restarting)
        self._observations, outcome = self.worlds.step(checked)
        self._elapsed += 1
        truncations = self._elapsed >= self._limit
        same_step = self.autoreset_mode == AutoresetMode.SAME_STEP
        finish = self._finish_same_step if same_step else self._finish_next_step
        return finish(outcome, truncations, restarting)

    def _check_ready(self, ended: np.ndarray) -> None:
        if not self._started.all():
            raise ResetNeeded(f"{type(self).__name__}.step() came before the first reset(); call reset() first")
        if self.autoreset_mode == AutoresetMode.DISABLED and ended.any():
            raise ResetNeeded(
                f"the episode of world {np.flatnonzero(ended)[0]} has ended and autoreset is disabled; call "
                "reset(options={'reset_mask': terminations | truncations}) before the next step()"
            )

    def _finish_next_step(self, outcome: Outcome, truncations: np.ndarray, restarting: np.ndarray) -> StepResult:
        """Reset the worlds whose episode ended in the previous step, and discard this step of theirs."""
        infos: dict[str, Any] = {}
        add_info(infos, outcome.info, ~restarting)
        self._reset_worlds(restarting, infos)
        rewards = np.where(restarting, 0.0, outcome.reward)
        terminations = outcome.terminated & ~restarting
        truncations = truncations & ~restarting
        self._ended = terminations | truncations
        return self._observations.copy(), rewards, terminations, truncations, infos

    def _finish_same_step(self, outcome: Outcome, truncations: np.ndarray, restarting: np.ndarray) -> StepResult:
        """Reset the worlds whose episode ended in this step. `restarting` is all false in this mode."""
        infos: dict[str, Any] = {}
        ended = outcome.terminated | truncations
        add_final(infos, self._observations, outcome.info, ended)
        add_info(infos, outcome.info, ~ended)
        self._reset_worlds(ended, infos)
        return self._observations.copy(), outcome.reward, outcome.terminated, truncations, infos

    def set_params(self, worlds: Any = None, **params: Any) -> None:
        """Set parameters of some worlds, such as masses and frictions. A reset does not change them.

        Args:
            worlds: None for all worlds, a boolean mask (num_envs,), or indices.
            params: values under MuJoCo's names and in MuJoCo's shapes, with or without a first axis for the worlds; see
                `simengine.Simulation.set_params`.

        Raises:
            ValueError: as `simengine.Simulation.set_params`.
        """
        self.worlds.set_params(worlds, **params)

    def render(self) -> tuple[Any, ...]:
        """Draw a picture of each world in the render mode of the environment; see `Renderer.render`."""
        simulation = self.worlds.simulation
        qpos, qvel = (read(simulation, name) for name in ("qpos", "qvel"))
        return tuple(self.renderer.render(*state) for state in zip(qpos, qvel, simulation.time.tolist(), strict=True))

    def close_extras(self, **kwargs: Any) -> None:
        """Release the simulation and the renderer."""
        self.renderer.close()
        self.worlds.close()
