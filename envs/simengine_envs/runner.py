"""`Runner`: compiles the functions of a pure environment, and runs them on its device in its precision."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import jax
import numpy as np
from gymnasium import spaces

from simengine import Model
from simengine.errors import BackendError
from simengine_envs.autoreset import AutoresetMode
from simengine_envs.choices import dtype_name
from simengine_envs.devices import device_of, resolved_backend
from simengine_envs.flags import Counts, Flags
from simengine_envs.options import EngineOptions, pure_env
from simengine_envs.pure import PureEnv
from simengine_envs.results import EnvState, StepResult
from simengine_envs.task import Task, Values


class Runner:
    """The compiled functions of an environment.

    Args:
        task: the task.
        num_envs: number of worlds.
        engine: options of the engine.
        max_episode_steps, autoreset_mode: as for `PureEnv`.

    Attributes:
        env: the pure environment.
        backend: name of the backend that runs.
        device: JAX device of all arrays.
        state: the state of all worlds; None before the first reset.
        flagged: how often steps flagged worlds.
    """

    def __init__(
        self,
        task: Task,
        num_envs: int,
        engine: EngineOptions,
        max_episode_steps: int | None,
        autoreset_mode: AutoresetMode,
    ):
        self.backend = resolved_backend(engine.backend)
        self.device = device_of(self.backend)
        self.num_envs = num_envs
        self.dtype = dtype_name(engine.dtype)
        with self.scope():
            options = engine._replace(backend=self.backend, dtype=self.dtype)
            self.env: PureEnv = self._made(task, options, max_episode_steps, autoreset_mode)
            self.observation_size = jax.eval_shape(self.env.reset, np.zeros(1, np.uint32))[1].shape[1]
        self._functions: dict[str, Callable[..., Any]] = self.env.__dict__.setdefault("_compiled", {})
        self.state: EnvState | None = None
        self._given: dict[str, np.ndarray] = {}
        self._stalls, self._bad_actions, self.flagged = Flags(), Flags(), Counts()

    @staticmethod
    def _made(
        task: Task, engine: EngineOptions, max_episode_steps: int | None, autoreset_mode: AutoresetMode
    ) -> PureEnv:
        """The environment whose functions are compiled."""
        return pure_env(task, engine, max_episode_steps, autoreset_mode)

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Run on the device, with 64-bit numbers if the precision needs them."""
        with jax.default_device(self.device), jax.enable_x64(self.dtype == "float64"):
            yield

    def _call(self, name: str, *arguments: Any) -> Any:
        if name not in self._functions:
            self._functions[name] = jax.jit(getattr(self.env, name))
        with self.scope():
            return self._functions[name](*arguments)

    def reset(self, seeds: np.ndarray) -> jax.Array:
        """Start the first episodes of all worlds with seeds (n,), and return the observations."""
        self.state, observation = self._started(np.asarray(seeds, np.uint32))
        return observation

    def reseed(self, seeds: np.ndarray, mask: np.ndarray) -> jax.Array:
        """Start first episodes in worlds of a mask (n,), with their entries of seeds (n,)."""
        assert self.state is not None, "reset all worlds first"
        fresh, _ = self._started(np.asarray(seeds, np.uint32))
        self.state, observation = self._call("merge", self.state, fresh, np.asarray(mask))
        return observation

    def _started(self, seeds: np.ndarray) -> tuple[Any, jax.Array]:
        """The first episodes of all worlds under the parameters that were set, and the observations."""
        found: tuple[Any, jax.Array] = self._call("reset", seeds, None, self._params())
        return found

    def restart(self, mask: np.ndarray) -> jax.Array:
        """Start the next episodes in worlds of a mask (n,), and return the observations of all worlds."""
        self.state, observation = self._call("restart", self.state, np.asarray(mask))
        return observation

    def step(self, action: Any) -> StepResult:
        """Step all worlds. Raises errors of steps that have been computed by now; see `look_for_errors`."""
        self.look_for_errors()
        self.state, result = self._call("step", self.state, action)
        found: StepResult = result
        self._stalls.add(found.stalled)
        self._bad_actions.add(found.bad_action)
        self.flagged.add(found.flagged)
        return found

    def look_for_errors(self) -> None:
        """Raise errors of steps that have been computed, without waiting for one.

        Raises:
            BackendError: worlds stood still since the memory for contacts was full.
            ValueError: an action was not finite.
        """
        stalled = self._stalls.found()
        if stalled is not None:
            raise BackendError(self.env.stall_message(stalled))
        bad = self._bad_actions.found()
        if bad is not None:
            raise ValueError(
                f"the action given to {type(self.env.task).__name__} was not finite in world {int(np.argmax(bad))}, "
                f"and in {bad.sum()} of {len(bad)} worlds; their episodes ended. Give finite numbers in every entry"
            )

    def info(self) -> Values:
        """What the task reports of the state."""
        found: Values = self._call("info", self.state)
        return found

    def place(self, qpos: np.ndarray, qvel: np.ndarray) -> None:
        """Set the coordinates (n, nq) and velocities (n, nv) of all worlds."""
        if self.state is None:
            self.reset(np.zeros(self.num_envs))
        self.state = self._call("place", self.state, qpos.astype(self.dtype), qvel.astype(self.dtype))

    def set_params(self, worlds: Any, params: dict[str, Any]) -> None:
        """Set parameters of some worlds; see `SingleEnv.set_params`."""
        chosen = slice(None) if worlds is None else np.asarray(worlds)
        self._given = with_given(self._given, self.env.model, self.num_envs, chosen, params)
        self._apply_params()

    def _apply_params(self) -> None:
        if self.state is not None:
            self.state = self._call("with_params", self.state, self._params())

    def _params(self) -> Any:
        return {name: value.astype(self.dtype) for name, value in self._given.items()}

    def spaces(self, kind: Any) -> tuple[spaces.Box, spaces.Box]:
        """The observation space, of a type, and the action space (float32) of one world."""
        low, high = self.env.action_range()
        observation = spaces.Box(-np.inf, np.inf, (self.observation_size,), kind)
        return observation, spaces.Box(low.astype(np.float32), high.astype(np.float32), dtype=np.float32)

    def host(self, name: str) -> np.ndarray:
        """A field of the state on the host, (n, ...) float64."""
        assert self.state is not None, "reset first"
        return np.asarray(getattr(self.state.worlds, name)).astype(np.float64)

    def times(self) -> list[float]:
        """Time of every world since its start [s]."""
        steps = self.host("nstep") * float(self.env.model.opt.timestep)
        return [float(time) for time in steps]


def with_given(
    given: Mapping[str, np.ndarray], model: Model, num_worlds: int, chosen: Any, params: Mapping[str, Any]
) -> dict[str, np.ndarray]:
    """Parameters (num_worlds, ...) by name, with those of some worlds changed.

    Args:
        given: parameters that were given before.
        model: the model.
        num_worlds: number of worlds.
        chosen: a slice, mask or indices of the worlds to change.
        params: values by name.

    Raises:
        ValueError: a name is unknown, or a value has a wrong shape or is not finite.
    """
    from simengine.model.params import WorldParameters

    meaning, changed = WorldParameters(model.table), dict(given)
    for name, value in params.items():
        default = meaning.default(name)
        held = changed.get(name)
        array = np.broadcast_to(default, (num_worlds, *default.shape)).copy() if held is None else held.copy()
        own = np.asarray(value, np.float64)
        try:
            array[chosen] = own
        except ValueError:
            raise ValueError(
                f"{name} has shape {own.shape}; give {default.shape}, or as many of that shape as there are worlds"
            ) from None
        if not np.isfinite(array).all():
            raise ValueError(f"{name} holds numbers that are not finite; give finite values")
        changed[name] = array
    return changed
