"""`EnvironmentRun`: an environment under what acts in it, with the returns of its episodes. It may be recorded."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import simengine
from simengine import Model
from simengine.cli.environments.acting import Actor
from simengine.cli.recordings.interrupted import damaged
from simengine.cli.recordings.trajectory import STATE
from simengine.files import UNREADABLE, replaced
from simengine.model.params import PARAMS, WorldParameters
from simengine_envs import BatchEnv, Draw, EnvState
from simengine_envs.draw import Purpose, of_episodes

_FORCES = ("qfrc_applied", "xfrc_applied")


class EnvironmentRun:
    """Steps an environment.

    Args:
        name: its id.
        envs: the environment, with arrays of JAX.
        actor: what acts.
        seed: seed of world 0; world i has `seed + i`.
        recorded: whether `taken` will be asked for. The worlds then have one model.

    Attributes:
        returns, lengths: return and length of each episode that has ended, in the order of their ends.
        totals: return of each world's present episode so far, (num_worlds,).
    """

    def __init__(self, name: str, envs: BatchEnv, actor: Actor, seed: int, recorded: bool = False) -> None:
        self._envs, self._actor, self._recorded = envs, actor, recorded
        first, _ = envs.reset(seed=seed)
        self._observation = np.asarray(first)
        self.returns: list[float] = []
        self.lengths: list[int] = []
        self.totals = np.zeros(envs.num_envs)
        self._name = name
        self._taken: dict[str, np.ndarray] = {}
        self._inputs: Any = jax.jit(self._inputs_of)
        start = self._state
        self.step(0)  # compiles
        envs.state, self._observation = start, np.asarray(first)
        self.returns, self.lengths = [], []
        self.totals[:] = 0

    @property
    def _state(self) -> EnvState:
        state = self._envs.state
        assert state is not None
        return state

    def step(self, number: int) -> None:
        """Step every world. `number` counts the steps of the run, from 0."""
        runner = self._envs.runner
        before = self._state
        chosen = self._actor.act(self._observation, number)
        with runner.scope():
            actions = jnp.asarray(chosen, runner.dtype)
            inputs = self._inputs(before, actions) if self._recorded else ()
        seen, *others, infos = self._envs.step(actions)
        self._observation = np.asarray(seen)
        reward, terminated, truncated = map(np.asarray, others)
        ended = terminated | truncated
        self.totals += reward
        if ended.any():
            episode = infos["episode"]
            self.returns += np.asarray(episode["r"])[ended].tolist()
            self.lengths += np.asarray(episode["l"])[ended].tolist()
            self.totals[ended] = 0
        if self._recorded:
            ctrl, jumped = map(np.asarray, inputs)
            values = {"ctrl": ctrl, "action": np.asarray(actions), "reward": reward, "jumped": jumped}
            self._taken = {**values, "terminated": terminated, "truncated": truncated}

    def _inputs_of(self, state: EnvState, action: jax.Array) -> tuple[jax.Array, jax.Array]:
        """The controls of a step, (n, nu), and the worlds whose state does not follow from a frame by physics, (n,).

        These are the worlds in which an episode starts, in which the task changes the state or applies forces before
        the step, and those that the engine has stopped.
        """
        env = self._envs.pure
        before = env.snapshot(state)
        draw = Draw(of_episodes(state.keys, state.episode), state.length, Purpose.EVENT, env.dtype)
        changes = env.task.event(before, draw)
        worlds = state.worlds._replace(**changes)
        jumped = state.ended | (worlds.world_status != 0)
        for name in changes:
            jumped |= _any(getattr(worlds, name) != getattr(state.worlds, name))
        for name in _FORCES:
            jumped |= _any(getattr(worlds, name) != 0)
        usual = simengine.initial_state(env.model, env.dtype, num_worlds=1)
        jumped |= _any(worlds.eq_active != usual.eq_active)
        return env.task.control(before, action), jumped

    # ------------------------------------------------------------------------------------------------ recorded

    @property
    def model(self) -> Model:
        """The model."""
        return self._envs.pure.model

    @property
    def dtype(self) -> str:
        """The precision, "float32" or "float64"."""
        return self._envs.runner.dtype

    @property
    def backend(self) -> str:
        """The backend that runs."""
        return self._envs.runner.backend

    @property
    def stride(self) -> int:
        """Number of steps of the physics in a step."""
        return self._envs.task.frame_skip

    @property
    def about(self) -> dict[str, Any]:
        """Entries of the trajectory file about the environment."""
        own = np.array(own_params(self.model, self._state.params), str)
        return {"environment": self._name, "frame_skip": self.stride, "params": own}

    def frame(self, worlds: np.ndarray) -> dict[str, np.ndarray]:
        """The present time and state of some worlds, (worlds, ...) by name."""
        state = self._state
        fields = {name: np.ascontiguousarray(np.asarray(getattr(state.worlds, name))[worlds]) for name in STATE}
        return {"time": np.array(self._envs.runner.times())[worlds], **fields}

    def taken(self, worlds: np.ndarray) -> dict[str, np.ndarray]:
        """What some worlds did in the last step, (rows, worlds, ...) by name, a row for each step of the physics.

        All but the controls have one row.
        """
        chosen = {name: np.ascontiguousarray(array[worlds])[None] for name, array in self._taken.items()}
        return {**chosen, "ctrl": np.repeat(chosen["ctrl"], self.stride, axis=0)}

    def save_state(self, path: Path) -> None:
        """Write everything on which later steps depend."""
        leaves = [_plain(leaf) for leaf in jax.tree.leaves(self._envs.state)]
        entries = {f"state_{k}": leaf for k, leaf in enumerate(leaves)}
        entries |= {"observation": self._observation, "totals": self.totals}
        entries |= {"returns": np.array(self.returns), "lengths": np.array(self.lengths, int)}
        with replaced(path) as file:
            np.savez(file, **entries)  # type: ignore[arg-type]

    def load_state(self, path: Path) -> None:
        """Take up the state that `save_state` wrote. Later steps have the same bits.

        Raises:
            ValueError: the file is damaged, or the state of another environment.
        """
        try:
            with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
                entries = dict(archive)
        except UNREADABLE as error:
            raise damaged(path) from error
        present, form = jax.tree.flatten(self._envs.state)
        with self._envs.runner.scope():
            leaves = [entries[f"state_{k}"] for k in range(sum(name.startswith("state_") for name in entries))]
            shapes = [_plain(leaf).shape for leaf in present]
            if [leaf.shape for leaf in leaves] != shapes:
                raise ValueError(f"{str(path)!r} is the state of another environment; remove its folder to start over")
            made = [_like(old, leaf) for old, leaf in zip(present, leaves, strict=True)]
            self._observation, self.totals = entries["observation"], entries["totals"]
            self.returns, self.lengths = entries["returns"].tolist(), entries["lengths"].tolist()
        self._envs.state = jax.tree.unflatten(form, made)


def own_params(model: Model, fields: Iterable[str]) -> list[str]:
    """Return the parameters, by MuJoCo's names, from which fields of the model table follow.

    Args:
        model: the model.
        fields: names of the fields in which worlds differ.
    """
    known, there = WorldParameters(model.table), set(fields)
    found = []
    for name in PARAMS if there else ():
        with suppress(ValueError):  # worlds of this model cannot differ in it
            derived = known.widths([name])
            found += [name] if derived and derived.keys() <= there else []
    return found


def _any(differs: jax.Array) -> jax.Array:
    return differs.reshape(len(differs), -1).any(axis=1)


def _plain(leaf: jax.Array) -> np.ndarray:
    """An array on the host. Of keys it has their data."""
    is_key = jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
    return np.asarray(jax.random.key_data(leaf) if is_key else leaf)


def _like(old: jax.Array, leaf: np.ndarray) -> jax.Array:
    is_key = jnp.issubdtype(old.dtype, jax.dtypes.prng_key)
    return jax.random.wrap_key_data(jnp.asarray(leaf)) if is_key else jnp.asarray(leaf, old.dtype)
