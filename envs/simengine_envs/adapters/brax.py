"""`BraxEnv` and `BraxBatchEnv`: tasks as `Env`s of Brax, whose agents then train inside one JAX program.

MuJoCo Playground's training programs take the same shape.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simengine_envs.adapters.making import named_task
from simengine_envs.adapters.missing import missing
from simengine_envs.autoreset import AutoresetMode
from simengine_envs.devices import resolved_backend
from simengine_envs.options import pure_env, split_arguments
from simengine_envs.pure import PureEnv
from simengine_envs.results import EnvState, StepResult
from simengine_envs.task import Task, Values

try:
    from brax.envs.base import Env, State
except ImportError as error:
    raise missing("Brax", "brax", error) from error


class _TaskEnv(Env):
    """What both environments have in common: a task of an id, and the conversion of actions, keys and results."""

    def __init__(self, env: str | type[Task], mode: AutoresetMode, limit: int | None, arguments: dict[str, Any]):
        task, own, _ = named_task(env)
        made, engine, _ = split_arguments(task, {**own, **arguments})
        engine = engine._replace(backend=resolved_backend(engine.backend))
        self.pure: PureEnv = pure_env(made, engine, limit, mode)
        self._backend = engine.backend
        self._made_from = (env, arguments)
        low, high = self.pure.action_range()
        self._low, self._high = low.astype(self.pure.dtype), high.astype(self.pure.dtype)
        state, observation = jax.eval_shape(self.pure.reset, np.zeros(1, np.uint32))
        self._observation_size = int(observation.shape[1])
        action = jax.ShapeDtypeStruct((1, len(low)), self.pure.dtype)
        self._info: Values = jax.eval_shape(self.pure.step, state, action)[1].info

    @property
    def observation_size(self) -> int:
        """Number of entries of an observation."""
        return self._observation_size

    @property
    def action_size(self) -> int:
        """Number of entries of an action."""
        return self.pure.action_size

    @property
    def backend(self) -> str:
        """Name of the backend that runs: "cuda", "host" or "jax"."""
        return self._backend

    @property
    def dt(self) -> float:
        """Duration of an environment step [s]."""
        return self.pure.dt

    @property
    def mj_model(self) -> Any:
        """MuJoCo's `MjModel`, to read from."""
        return self.pure.model.mj

    def _first(self, keys: jax.Array) -> State:
        """The state of first episodes of worlds with keys (n,) or (n, 2)."""
        physics, observation = self.pure.reset(jax.vmap(lambda key: jax.random.bits(key, (), jnp.uint32))(keys))
        zero = jnp.zeros(len(keys), self.pure.dtype)
        found = {name: jnp.zeros((len(keys), *of.shape[1:]), of.dtype) for name, of in self._info.items()}
        found |= self.pure.info(physics)
        return State(physics, observation, zero, zero, self._metrics(found), self._others(found))

    def _next(self, state: State, action: jax.Array) -> tuple[EnvState, StepResult]:
        """The step of n worlds with actions in [-1, 1], which become those of the task."""
        bounded = np.isfinite(self._low) & np.isfinite(self._high)
        low, high = np.where(bounded, self._low, -1), np.where(bounded, self._high, 1)
        scaled = low + (jnp.asarray(action, self.pure.dtype) + 1) / 2 * (high - low)
        return self.pure.step(state.pipeline_state, jnp.asarray(scaled))

    def _metrics(self, info: Values) -> Values:
        """The numbers that the task reports, (n,) by name."""
        return {name: value.astype(self.pure.dtype) for name, value in info.items() if value.ndim == 1}

    @staticmethod
    def _others(info: Values) -> Values:
        """What else the task reports, (n, ...) by name."""
        return {name: value for name, value in info.items() if value.ndim > 1}


class BraxEnv(_TaskEnv):
    """A task in one world, for Brax's own wrappers, and for `wrap`.

    Under `jax.vmap` its steps become steps of a batch of worlds. It ends no episode by a limit and starts no new one:
    wrappers do. Each entry of an action in [-1, 1] is mapped to the range of the task; an entry without limits stays.
    `State.metrics` has the numbers that the task reports, and `State.info` what has more entries.

    Args:
        env: id of an environment, such as "simengine/Ant-v5", or the class of a task.
        **arguments: arguments of the task, and `backend` and `dtype` of the engine.

    Attributes:
        pure: the same task as functions of many worlds.

    Raises:
        TypeError: an argument is unknown.
        ValueError: an argument is out of its range, or there is no such id.
        simengine.errors.BackendError: the backend is not available.
    """

    def __init__(self, env: str | type[Task], **arguments: Any):
        super().__init__(env, AutoresetMode.DISABLED, None, arguments)

    def reset(self, rng: jax.Array) -> State:
        """Start an episode that follows from a JAX key."""
        state: State = jax.tree.map(lambda x: x[0], self._first(rng[None]))
        return state

    def step(self, state: State, action: jax.Array) -> State:
        """Step the world with an action (action size,) in [-1, 1]."""
        batch = jax.tree.map(lambda x: x[None], state)
        physics, result = self._next(batch, action[None])
        new = batch.replace(
            pipeline_state=physics,
            obs=result.observation,
            reward=result.reward,
            done=result.terminated.astype(self.pure.dtype),
            metrics={**batch.metrics, **self._metrics(result.info)},  # wrappers may have added their own
            info={**batch.info, **self._others(result.info)},
        )
        found: State = jax.tree.map(lambda x: x[0], new)
        return found


class BraxBatchEnv(_TaskEnv):
    """A task in many worlds, which does what Brax's wrappers do: `ppo.train(environment=env, wrap_env=False, ...)`.

    The number of worlds is that of the keys that `reset` is given. A world whose episode ends starts the next one in
    the same step, with a new draw of its start; Brax's own wrapper goes back to the first start instead.

    Args:
        env: id of an environment, such as "simengine/Ant-v5", or the class of a task.
        episode_length: steps after which an episode is truncated; None for the limit of the id.
        **arguments: arguments of the task, and `backend` and `dtype` of the engine.

    Attributes:
        pure: the same task as functions of many worlds.
        episode_length: steps after which an episode is truncated; None for no limit.

    Raises:
        TypeError: an argument is unknown.
        ValueError: an argument is out of its range, or there is no such id.
        simengine.errors.BackendError: the backend is not available.
    """

    def __init__(self, env: str | type[Task], episode_length: int | None = None, **arguments: Any):
        self.episode_length = named_task(env).max_episode_steps if episode_length is None else episode_length
        super().__init__(env, AutoresetMode.SAME_STEP, self.episode_length, arguments)

    def reset(self, rng: jax.Array) -> State:
        """Start episodes in n worlds, which follow from JAX keys (n,) or (n, 2)."""
        state = self._first(rng)
        zero = jnp.zeros_like(state.reward)
        sums = {"sum_reward": zero, "length": zero, **dict.fromkeys(state.metrics, zero)}
        flags = dict.fromkeys(("steps", "truncation", "time_out", "episode_done"), zero)
        found: State = state.replace(info={**state.info, **flags, "episode_metrics": sums})
        return found

    def step(self, state: State, action: jax.Array) -> State:
        """Step n worlds with actions (n, action size) in [-1, 1].

        `info` has what Brax's wrappers report: "steps" of the episode, "truncation", "episode_done" and
        "episode_metrics", sums since the start of the episode.
        """
        physics, result = self._next(state, action)
        metrics = self._metrics(result.info)
        done = (result.terminated | result.truncated).astype(self.pure.dtype)
        truncation = (result.truncated & ~result.terminated).astype(self.pure.dtype)
        steps = result.episode_length.astype(self.pure.dtype)
        before, going = state.info["episode_metrics"], 1 - state.info["episode_done"]
        sums = {name: before[name] * going + value for name, value in metrics.items()}
        sums |= {"sum_reward": result.episode_return, "length": steps}
        info = {**state.info, **self._others(result.info), "episode_metrics": sums, "episode_done": done}
        info |= {"steps": steps, "truncation": truncation, "time_out": truncation}
        metrics = {**state.metrics, **metrics}  # wrappers may have added their own
        return state.replace(
            pipeline_state=physics, obs=result.observation, reward=result.reward, done=done, metrics=metrics, info=info
        )


def wrap(env: BraxEnv, episode_length: int, action_repeat: int = 1, randomization_fn: Any = None) -> BraxBatchEnv:
    """Many worlds of an environment, in place of Brax's wrappers: `ppo.train(environment=env, wrap_env_fn=wrap, ...)`.

    Raises:
        ValueError: actions are to be repeated, or there is a function for randomisation.
    """
    if action_repeat != 1:
        raise ValueError(f"action_repeat is {action_repeat}; repeat actions with the argument frame_skip of the task")
    if randomization_fn is not None:
        raise ValueError('randomization_fn is of no use here; draw parameters in the task, as "params" of its start')
    made_from, arguments = env._made_from
    return BraxBatchEnv(made_from, episode_length, **arguments)
