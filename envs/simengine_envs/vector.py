"""`BatchEnv`: any task as a `gymnasium.vector.VectorEnv`, all its worlds in one simulation."""

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
    """A task in `num_envs` worlds; a subclass names the task.

    It behaves as `gymnasium.vector.SyncVectorEnv` over the single environments does, in each of the three autoreset
    modes: the same observations, rewards, terminations, truncations and infos from the same seeds, bit for bit with
    backend "host" or "cuda" ("jax" rounds by batch size).

    Args:
        num_envs: worlds.
        autoreset_mode: what happens to an episode that has ended: it starts again at the next step
            (`AutoresetMode.NEXT_STEP`; that step's action is not used and its reward is zero), in the same step
            (`SAME_STEP`; the last observation and info stand in `infos["final_obs"]` and `infos["final_info"]`), or
            when the caller says so (`DISABLED`, with `reset(options={"reset_mask": mask})`).
        max_episode_steps: steps after which an episode is truncated; None or -1 for no limit.
        render_mode: None, "rgb_array", "depth_array" or "rgbd_tuple".
        **arguments: as `SingleEnv`.

    Observations (num_envs, size) and rewards (num_envs,) are float64 NumPy arrays, new at every call.

    Raises:
        TypeError: an argument that nobody knows.
        ValueError: an argument out of its range.
        FileNotFoundError: no such model file.
        simengine.errors.BackendError: the backend is not there.
    """

    task_type: ClassVar[type[Task]]
    # a window for each world is no use, so "human" is left to the single environment
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
        """MuJoCo's model, as Gymnasium's environments have it; to change numbers of it, see `set_params`."""
        return self.worlds.model.mj

    @property
    def dt(self) -> float:
        """Duration of a step [s]."""
        return self.worlds.dt

    # as in SyncVectorEnv, these are one for each world where the base class has a single one
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
        """Start episodes in all worlds, or in those under `options["reset_mask"]`.

        Args:
            seed: of world 0, its successors for the next worlds; or a list with a seed or None for each world. None
                goes on with the generators there are.
            options: may hold "reset_mask", (num_envs,) bool with at least one true entry.

        Returns:
            Observations (num_envs, size) of all worlds, and the info of those that were reset.

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
        """Reset the worlds under the mask (num_envs,); their observations and info go where they belong."""
        if not mask.any():
            return
        worlds = np.flatnonzero(mask)
        self._observations[worlds], info = self.worlds.reset(worlds, self._generators.at(worlds))
        self._elapsed[worlds] = 0
        self._started[worlds] = True
        add_info(infos, spread(info, worlds, self.num_envs), mask)

    def step(self, actions: Any) -> StepResult:
        """Step every world under `actions` (num_envs, nu); the class docstring tells what ended episodes do.

        Returns:
            Observations, rewards, terminations, truncations and infos, each with one entry for each world.

        Raises:
            ValueError: wrong shape, or an entry that is not finite where the action is used.
            gymnasium.error.ResetNeeded: a world has not been reset yet or, with autoreset disabled, since its end.
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
        """Start again the worlds that ended at the step before; all that their worlds just did is dropped."""
        infos: dict[str, Any] = {}
        add_info(infos, outcome.info, ~restarting)
        self._reset_worlds(restarting, infos)
        rewards = np.where(restarting, 0.0, outcome.reward)
        terminations = outcome.terminated & ~restarting
        truncations = truncations & ~restarting
        self._ended = terminations | truncations
        return self._observations.copy(), rewards, terminations, truncations, infos

    def _finish_same_step(self, outcome: Outcome, truncations: np.ndarray, restarting: np.ndarray) -> StepResult:
        """Start again the worlds that ended in this step; `restarting` is all false, since none waits."""
        infos: dict[str, Any] = {}
        ended = outcome.terminated | truncations
        add_final(infos, self._observations, outcome.info, ended)
        add_info(infos, outcome.info, ~ended)
        self._reset_worlds(ended, infos)
        return self._observations.copy(), outcome.reward, outcome.terminated, truncations, infos

    def set_params(self, worlds: Any = None, **params: Any) -> None:
        """Give environments parameters of their own, such as masses and frictions; they stay through resets.

        Args:
            worlds: None for all, a boolean mask of (num_envs,), or indices.
            params: by MuJoCo's names and in its shapes, for each or for all; see `simengine.Simulation.set_params`.

        Raises:
            ValueError: as `simengine.Simulation.set_params`.
        """
        self.worlds.set_params(worlds, **params)

    def render(self) -> tuple[Any, ...]:
        """Draw every world as `render_mode` says, one picture each; see `Renderer.render`."""
        simulation = self.worlds.simulation
        qpos, qvel = (read(simulation, name) for name in ("qpos", "qvel"))
        return tuple(self.renderer.render(*state) for state in zip(qpos, qvel, simulation.time.tolist(), strict=True))

    def close_extras(self, **kwargs: Any) -> None:
        """Release the simulation and the renderer."""
        self.renderer.close()
        self.worlds.close()
