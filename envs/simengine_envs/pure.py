"""`PureEnv`: a task in many worlds as pure functions of JAX, from which all other environments are made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import simengine
from simengine.model.params import PARAMS
from simengine_envs.autoreset import AutoresetMode
from simengine_envs.checks import Checks
from simengine_envs.choices import autoreset_mode_of, dtype_name
from simengine_envs.devices import resolved_backend
from simengine_envs.draw import Draw, Purpose, keys_of, of_episodes
from simengine_envs.restarts import Last, of_worlds, restarted_by_rounds, restarted_in_all
from simengine_envs.results import EnvState, StepResult
from simengine_envs.rounding import rounded, unknown_zero
from simengine_envs.rows import repeated
from simengine_envs.snapshot import Snapshot
from simengine_envs.task import Task, Values
from simengine_envs.written import for_chain, written_for

# These fields are zero after a reset, since only mj_rnePostConstraint computes them and Gymnasium's reset calls only
# mj_forward. Each is (nbody, 6).
POST_CONSTRAINT_FIELDS = frozenset({"cacc", "cfrc_int", "cfrc_ext"})


# Backends on which every step computes starts of episodes in all worlds and takes them where a mask says. Dynamics, and
# what follows from masses, are computed in the worlds of the mask only. On other backends a loop starts the episodes,
# those of few worlds at a time where there are many. A GPU would wait in it for the host to look at the mask. On a
# CPU one call computes starts, too, where it can compute a whole step (`simengine_envs.lanes`).
RESTARTS_UNDER_MASK = frozenset({"cuda"})


class PureEnv:
    """A task in many worlds, as functions that work under `jit`, `lax.scan`, `vmap` and `shard_map`.

    Results do not depend on other worlds. On backends "host" and "cuda" they have the same bits in any number of
    worlds, since sums have one order and every result is rounded by itself (`simengine_envs.rounding`).

    Args:
        task: the task.
        backend: "cuda", "host", "jax", or "auto" for the first of these that can run here.
        dtype: "float32" or "float64" for physics, rewards and observations. The second needs JAX's 64-bit mode.
        max_episode_steps: steps after which an episode is truncated; None for no limit.
        autoreset_mode: when a new episode starts after one has ended; see `gymnasium.vector.AutoresetMode`.
        nconmax, njmax: numbers of contacts and of constraint rows of a world for which there is memory on a GPU; see
            `simengine.make_step`.

    Attributes:
        task: the task, with names replaced by ids.
        model: the engine's model.
        backend: name of the backend that runs.
        dt: duration of an environment step [s].
        room: `nconmax` and `njmax`.

    Raises:
        ValueError: an argument is out of its range.
        FileNotFoundError: there is no such model.
        simengine.errors.BackendError: the backend cannot run here.
    """

    def __init__(
        self,
        task: Task,
        backend: str = "auto",
        dtype: str = "float32",
        max_episode_steps: int | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        nconmax: int | None = None,
        njmax: int | None = None,
    ):
        self.autoreset_mode = autoreset_mode_of(autoreset_mode)
        if max_episode_steps is not None and max_episode_steps < 1 and max_episode_steps != -1:
            raise ValueError(f"max_episode_steps must be positive, or None or -1 for no limit, not {max_episode_steps}")
        self.model = task.load()
        self.task = task.resolve(self.model)
        self.dtype = dtype_name(dtype)
        self.max_episode_steps = None if max_episode_steps == -1 else max_episode_steps
        self.dt = float(self.model.opt.timestep) * task.frame_skip
        self.backend = resolved_backend(backend)
        derived = tuple(sorted(set(self.task.derived)))
        self.room = {"nconmax": nconmax, "njmax": njmax}
        options: dict[str, Any] = {"backend": self.backend, **self.room}
        self._step = simengine.make_step(self.model, steps=task.frame_skip, keep=derived, **options)
        self.kept_at_start = tuple(name for name in derived if name not in POST_CONSTRAINT_FIELDS)
        self._forward = simengine.make_forward(self.model, keep=self.kept_at_start, **options)
        self._params = simengine.make_batch_params(self.model, self.backend)
        self._derived = derived
        self._checks = Checks(task)
        self._jitted: dict[str, Callable[..., Any]] = {}
        if not task.default_weights.keys() >= task.weights.keys():  # then the terms tell whether the names are right
            self._trace_step()

    # ------------------------------------------------------------------------------------------------ public

    def reset(
        self,
        seeds: jax.Array | np.ndarray | int,
        num_envs: int | None = None,
        params: Mapping[str, Any] | None = None,
    ) -> tuple[EnvState, jax.Array]:
        """Start the first episodes of all worlds.

        Args:
            seeds: (n,) integers; or one seed, which world i takes plus i.
            num_envs: n, if there is one seed.
            params: parameters that the worlds keep through all episodes, (n, ...) by MuJoCo's name, such as
                "body_mass"; see `simengine.make_params`.

        Returns:
            The state, and the observations (n, size).
        """
        if jnp.ndim(seeds) == 0:
            if num_envs is None:
                raise ValueError("one seed needs num_envs; give it, or an array of seeds")
            seeds = jnp.arange(num_envs, dtype=jnp.uint32) + jnp.asarray(seeds, jnp.uint32)
        keys = keys_of(jnp.asarray(seeds, jnp.uint32))
        return self._rounded(self._first, keys, keys, dict(params or {}))

    def restart(self, state: EnvState, mask: jax.Array) -> tuple[EnvState, jax.Array]:
        """Start new episodes in worlds of a mask (n,) bool, and return the state and all observations."""
        return self._rounded(self._next, state.keys, state, mask)

    def merge(self, state: EnvState, other: EnvState, mask: jax.Array) -> tuple[EnvState, jax.Array]:
        """The state with worlds of a mask (n,) from another state, and all observations."""
        state = jax.tree.map(lambda one, two: of_worlds(mask, two, one), state, other)
        return state, self._rounded(self._observe, state.keys, state)

    def place(self, state: EnvState, qpos: jax.Array, qvel: jax.Array) -> EnvState:
        """The state with other coordinates (n, nq) and velocities (n, nv), at time zero and with zero controls."""
        fresh = simengine.initial_state(self.model, self.dtype, num_worlds=len(qpos))
        worlds = fresh._replace(qpos=jnp.asarray(qpos, self.dtype), qvel=jnp.asarray(qvel, self.dtype))
        return state._replace(worlds=worlds, fields=self._evaluated(worlds, state.params, jnp.ones(len(qpos), bool)))

    def with_params(self, state: EnvState, params: Mapping[str, Any]) -> EnvState:
        """The state with parameters of the worlds, (n, ...) by MuJoCo's name; see `simengine.make_params`."""
        every = jnp.ones(len(state.length), bool)
        return state._replace(params={**state.params, **self._table_fields(params, every, state.params)})

    def info(self, state: EnvState) -> Values:
        """What the task reports of a state, (n, ...) by name."""
        return self._rounded(self._info, state.keys, state)

    def snapshot(self, state: EnvState) -> Snapshot:
        """What the task sees of a state."""
        fields = {**state.worlds._asdict(), **state.fields}
        finite = state.worlds.world_status == 0
        return Snapshot(fields, state.memory, state.action, state.length, finite, self.dt, self.model)

    def step(self, state: EnvState, action: jax.Array) -> tuple[EnvState, StepResult]:
        """Step every world.

        Args:
            state: the state.
            action: (n, action size).
        """
        return self._rounded(self._stepped, state.keys, state, action)

    # -------------------------------------------------------------------------------------------- parts of a step

    def _trace_step(self) -> None:
        """Trace a step of one world, which checks what the task returns."""
        with jax.enable_x64(self.dtype == "float64"):
            state = jax.eval_shape(self._first, keys_of(jnp.zeros(1, jnp.uint32)), {})[0]
            jax.eval_shape(self._stepped, state, jax.ShapeDtypeStruct((1, self.action_size), self.dtype))

    def _rounded(self, function: Callable[..., Any], keys: jax.Array, *arguments: Any) -> Any:
        """Call a function so that bits do not depend on the number of worlds; not on backend "jax", whose do."""
        if self.backend == "jax":
            return function(*arguments)
        name = function.__name__
        if name not in self._jitted:
            self._jitted[name] = jax.jit(partial(rounded, function))
        with written_for(self.backend):
            return self._jitted[name](unknown_zero(keys), *arguments)

    def _first(self, keys: jax.Array, params: Mapping[str, Any]) -> tuple[EnvState, jax.Array]:
        """The start of the first episodes, and the observations."""
        every = jnp.ones(len(keys), bool)
        kept = self._table_fields(params, every, {})
        state = self._started(keys, jnp.zeros(len(keys), jnp.int32), None, kept, every)
        return state, self._observe(state)

    def _next(self, state: EnvState, mask: jax.Array) -> tuple[EnvState, jax.Array]:
        """The start of the next episodes in worlds of a mask, and all observations."""
        state, _ = self._restarted(state, {}, mask)
        return state, self._observe(state)

    def _info(self, state: EnvState) -> Values:
        return self._checks.info(self.task.info(self.snapshot(state)), len(state.length))

    def _stepped(self, state: EnvState, action: jax.Array) -> tuple[EnvState, StepResult]:
        count = len(state.length)
        new = self._moved(state, action)
        before, now = self.snapshot(state), self.snapshot(new)
        draw = self._draw(new, Purpose.MEMORY)
        terms, reward = self._checks.rewards(self.task.rewards(before, now), count, self.dtype)
        bad_action = ~jnp.isfinite(new.action).all(axis=1)
        fallen = self._checks.mask("terminated", self.task.terminated(before, now), count)
        terminated = fallen | ~now.finite | bad_action
        truncated = jnp.zeros(count, bool)
        if self.max_episode_steps is not None:
            truncated = new.length >= self.max_episode_steps
        memory = self._checks.memory(self.task.remember(before, now, draw), state.memory)
        names = self.task.term_names(terms)
        named = {names[name]: value for name, value in terms.items() if name in names}
        said = self._checks.named("info", self.task.info(now))
        more = self._checks.named("step_info", self.task.step_info(before, now))
        info = self._checks.info({**said, **more, **named}, count)
        restarting = state.ended if self.autoreset_mode == AutoresetMode.NEXT_STEP else jnp.zeros(count, bool)
        reward, terminated, truncated = (jnp.where(restarting, 0, x) for x in (reward, terminated, truncated))
        terminated, truncated = terminated.astype(bool), truncated.astype(bool)
        ended = terminated | truncated
        new = new._replace(memory=memory, total=state.total + reward, ended=ended)
        stalled = (new.worlds.stalled > state.worlds.stalled) & ~restarting
        bad_action = bad_action & ~restarting
        # a flagged world stays so until its next episode
        flagged = jnp.where(state.worlds.world_status == 0, new.worlds.world_status, 0)
        reported = (info, restarting, reward, new.total, new.length, stalled, bad_action, flagged)
        result = StepResult(reward, reward, terminated, truncated, *reported)
        return self._after(new, result)

    def _after(self, new: EnvState, result: StepResult) -> tuple[EnvState, StepResult]:
        """Start new episodes as the autoreset mode says, and observe."""
        if self.autoreset_mode == AutoresetMode.DISABLED:
            seen = self._observe(new)
            return new, result._replace(observation=seen, final_observation=seen)
        if self.autoreset_mode == AutoresetMode.NEXT_STEP:
            new, info = self._restarted(new, result.info, result.restarted)
            seen = self._observe(new)
            return new, result._replace(observation=seen, final_observation=seen, info=info)
        final = self._observe(new)
        new, _ = self._restarted(new, {}, new.ended)
        return new, result._replace(observation=self._observe(new), final_observation=final)

    def _moved(self, state: EnvState, action: jax.Array) -> EnvState:
        """The state after events and physics. Worlds that the engine stopped keep their last finite values."""
        action, expected = jnp.asarray(action, self.dtype), (len(state.length), self.action_size)
        if action.shape != expected:
            name = type(self.task).__name__
            raise ValueError(f"the action given to {name} has shape {action.shape}; give one of shape {expected}")
        before = self.snapshot(state)
        changes = self._checks.named("event", self.task.event(before, self._draw(state, Purpose.EVENT)))
        worlds = self._replaced(state.worlds, changes)
        ctrl = self._checks.array("control", self.task.control(before, action), (len(action), self.model.nu))
        made = self._step(worlds, ctrl.astype(self.dtype), state.params or None)
        worlds, fields = made if self._derived else (made, {})
        finite = worlds.world_status == 0
        kept = {name: of_worlds(finite, fields[name], state.fields[name]) for name in self._derived}
        return state._replace(worlds=worlds, fields=kept, action=action, length=state.length + 1)

    def _replaced(self, worlds: simengine.BatchState, changes: Mapping[str, Any]) -> simengine.BatchState:
        return worlds._replace(**self._checks.state(changes, worlds))

    def _draw(self, state: EnvState, purpose: Purpose) -> Draw:
        return Draw(of_episodes(state.keys, state.episode), state.length, purpose, self.dtype)

    def _observe(self, state: EnvState) -> jax.Array:
        seen = self.task.observation(self.snapshot(state), self._draw(state, Purpose.OBSERVATION))
        return self._checks.observation(seen, len(state.length)).astype(self.dtype)

    def _started(
        self, keys: jax.Array, episodes: jax.Array, last: Values | None, kept: Values, mask: jax.Array
    ) -> EnvState:
        """The start of episodes (n,) of worlds with these keys, and with the parameters that they keep.

        Derived fields and parameters are valid in worlds of a mask (n,) only.
        """
        count, zero = len(keys), jnp.zeros(len(keys), jnp.int32)
        draw = Draw(of_episodes(keys, episodes), zero, Purpose.START, self.dtype)
        values = dict(self._checks.named("start", self.task.start(self.model, draw, last)))
        params = {**kept, **self._table_fields(values.pop("params", {}), mask, kept)}
        memory = self._checks.memory(values.pop("memory", {}), None)
        initial = simengine.initial_state(self.model, self.dtype, num_worlds=1)
        nothing = jnp.zeros((1, self.action_size), self.dtype), jnp.zeros(1, self.dtype), jnp.zeros(1, bool)
        fresh, (action, total, ended) = repeated((initial, nothing), count)
        worlds = self._replaced(fresh, values)
        return EnvState(
            worlds, self._evaluated(worlds, params, mask), params, memory, action, keys, episodes, zero, total, ended
        )

    def _evaluated(self, worlds: simengine.BatchState, params: Values, mask: jax.Array) -> Values:
        """Derived fields of states without controls, as after mj_forward, in worlds of a mask (n,)."""
        count = len(worlds.qpos)
        zero = jnp.zeros((count, self.model.nbody, 6), self.dtype)
        found = {name: zero for name in self._derived if name in POST_CONSTRAINT_FIELDS}
        if len(found) < len(self._derived):
            ctrl = jnp.zeros((count, self.model.nu), self.dtype)
            found |= self._forward(worlds, ctrl, params or None, mask)
        return found

    def _table_fields(self, params: Mapping[str, Any], mask: jax.Array, kept: Values) -> Values:
        """Fields of the model table that follow from parameters, in worlds of a mask (n,) that have some already."""
        values = self._checks.params(params, PARAMS, len(mask), self.dtype)
        found = self._params(values, mask, kept)
        return {name: value.astype(self.dtype) for name, value in found.items()}

    def _restarted(self, state: EnvState, info: Values, mask: jax.Array) -> tuple[EnvState, Values]:
        """The state, and what is reported of it by these names, with new episodes in worlds of a mask (n,)."""

        def begin(last: Last, mask: jax.Array) -> tuple[EnvState, Values]:
            memory = {**last["memory"], "episode_length": last["length"], "episode_return": last["total"]}
            fresh = self._started(last["keys"], last["episode"] + 1, memory, last["params"], mask)
            said = self._info(fresh) if info else {}
            return fresh, {
                name: said.get(name, jnp.zeros((len(mask), *v.shape[1:]), v.dtype)) for name, v in info.items()
            }

        if self.backend in RESTARTS_UNDER_MASK or for_chain():
            return restarted_in_all(state, info, mask, begin)
        return restarted_by_rounds(state, info, mask, begin, rows_of_all=self.backend != "host")

    def stall_message(self, stalled: np.ndarray) -> str:
        """A sentence on worlds of a mask (n,) that stood still since the memory for contacts was full."""
        held = dict(zip(self.room, simengine.contact_capacity(self.model, len(stalled)), strict=True))
        held |= {name: given for name, given in self.room.items() if given is not None}
        return (
            f"{stalled.sum()} of {len(stalled)} worlds of model {self.model.name!r} stood still in a step, since the "
            f"memory for contacts or constraint rows was full on backend {self.backend!r}; make the environment with "
            f"more room, such as nconmax={2 * held['nconmax']}, njmax={2 * held['njmax']} (now {held['nconmax']} and "
            f"{held['njmax']} a world)"
        )

    @property
    def action_size(self) -> int:
        """Number of entries of an action."""
        return len(self.task.action_range(self.model)[0])

    def action_range(self) -> tuple[np.ndarray, np.ndarray]:
        """Least and largest actions, (action size,) each."""
        return self.task.action_range(self.model)
