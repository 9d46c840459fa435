"""`Worlds`: the worlds of an environment in one simulation, and resets of some of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import simengine
from simengine_envs.assets import model_path
from simengine_envs.task import Outcome, Task

# These fields are zero after a reset, since only mj_rnePostConstraint computes them and Gymnasium's reset calls only
# mj_forward.
POST_CONSTRAINT_FIELDS = frozenset({"cacc", "cfrc_int", "cfrc_ext"})
# Number of worlds that are reset together. If it is large, a reset of all worlds takes few calls. If it is small, the
# reset of a single world is cheap.
RESET_CHUNK = 32


class EngineOptions(NamedTuple):
    """Options of the engine.

    Attributes:
        backend: "auto", "cuda", "host" or "jax".
        executor: name of an executor of the scheduler, or "auto".
        dtype: type of the engine's real numbers, "float32" or "float64". Observations and rewards are always float64.
    """

    backend: str = "auto"
    executor: str = "auto"
    dtype: str = "float32"


class Worlds:
    """Worlds of a task that are stepped together and reset one by one.

    Every array that it takes or returns is a NumPy array of float64 or bool whose first axis is the world.

    Args:
        task: the task.
        num_worlds: number of worlds.
        engine: options of the engine.

    Attributes:
        task: the task, with names replaced by ids.
        model: the engine's model.
        simulation: the engine's simulation of all worlds.
        dt: duration of an environment step [s].
        init_qpos, init_qvel: the model's reference state, (nq,) and (nv,).
    """

    def __init__(self, task: Task, num_worlds: int, engine: EngineOptions):
        self.model = simengine.load_model(model_path(task.xml_file))
        self.task = task.resolve(self.model)
        self.num_worlds = num_worlds
        self.simulation = self._simulation(num_worlds, engine)
        # Resets are evaluated in a simulation of their own, which leaves derived fields and warm starts of the other
        # worlds unchanged.
        self._scratch = self._simulation(min(num_worlds, RESET_CHUNK), engine)
        self.dt = float(self.model.opt.timestep) * task.frame_skip
        self.init_qpos = np.array(self.model.mj.qpos0, dtype=np.float64)
        self.init_qvel = np.zeros(self.model.nv)
        self._memory: dict[str, np.ndarray] = {}
        self._own_params: dict[str, None] = {}  # names, in the order in which they were first set

    def _simulation(self, num_worlds: int, engine: EngineOptions) -> simengine.Simulation:
        return simengine.Simulation(
            self.model,
            num_worlds=num_worlds,
            backend=engine.backend,
            executor=engine.executor,
            dtype=engine.dtype,
            keep=self.task.derived,
            on_nonfinite="freeze",
        )

    def set_params(self, worlds: Any = None, **params: Any) -> None:
        """Set parameters of some worlds, which resets do not change; see `simengine.Simulation.set_params`."""
        self.simulation.set_params(worlds, **params)
        self._own_params |= dict.fromkeys(params)

    def reset(
        self, worlds: np.ndarray, generators: list[np.random.Generator]
    ) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Start new episodes.

        Args:
            worlds: indices of the worlds, (k,).
            generators: a random generator for each of these worlds.

        Returns:
            The observations (k, size), and the infos, arrays (k,) by key.
        """
        states = [self.task.initial_state(rng, self.init_qpos, self.init_qvel) for rng in generators]
        qpos, qvel = (np.array(part, dtype=np.float64) for part in zip(*states, strict=True))
        return self.set_state(worlds, qpos, qvel)

    def set_state(
        self, worlds: np.ndarray, qpos: np.ndarray, qvel: np.ndarray
    ) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Set the state of worlds (k,) to `qpos` (k, nq) and `qvel` (k, nv), with zero time and controls.

        Returns:
            The same as `reset`.
        """
        fields, warmstart = self._evaluate(worlds, qpos, qvel)
        self.simulation.reset(worlds)
        self.simulation.set_state(worlds, qpos=qpos, qvel=qvel, qacc_warmstart=warmstart)
        for name, value in self.task.memory(fields).items():
            if name not in self._memory:
                self._memory[name] = np.zeros((self.num_worlds, *value.shape[1:]))
            self._memory[name][worlds] = value
        return self.task.observation(fields), self.task.reset_info(fields)

    def _evaluate(
        self, worlds: np.ndarray, qpos: np.ndarray, qvel: np.ndarray
    ) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """The fields (k, ...) of states, as mj_resetData and mj_forward compute them, and their `qacc_warmstart`."""
        chunks = []
        size = self._scratch.num_worlds
        for start in range(0, len(qpos), size):
            part = slice(start, start + size)
            count = len(qpos[part])
            self._scratch.reset()
            if self._own_params:
                self._scratch.set_params(np.arange(count), **self._params_of(worlds[part]))
            self._scratch.set_state(np.arange(count), qpos=qpos[part], qvel=qvel[part])
            self._scratch.forward()
            values = self._read(self._scratch)
            values["qacc"] = read(self._scratch, "qacc")
            chunks.append({name: value[:count] for name, value in values.items()})
        fields = {name: np.concatenate([chunk[name] for chunk in chunks]) for name in chunks[0]}
        warmstart = fields.pop("qacc")
        for name in POST_CONSTRAINT_FIELDS.intersection(fields):
            fields[name][:] = 0
        return fields, warmstart

    def _params_of(self, worlds: np.ndarray) -> dict[str, np.ndarray]:
        """The parameters of worlds (k,) that have been set, (k, ...) by name."""
        group = self.simulation.groups[0]
        return {name: group.to_host(group.params(name)[worlds]) for name in self._own_params}

    def _read(self, simulation: simengine.Simulation) -> dict[str, np.ndarray]:
        return {name: read(simulation, name) for name in ("qpos", "qvel", *self.task.derived)}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, Outcome]:
        """Step every world by `frame_skip` engine steps.

        A world whose state would not be finite is stopped at its last finite state and counts as terminated.

        Args:
            action: (num_worlds, nu).

        Returns:
            The observations (num_worlds, size), and the outcome.
        """
        self.simulation.step(n=self.task.frame_skip, ctrl=action)
        fields = self._read(self.simulation)
        finite = read(self.simulation, "world_status") == 0
        if not finite.all():
            self._restore_stopped(fields, ~finite)
        outcome = self.task.outcome(self._memory, fields, action, finite, self.dt)
        self._memory = {name: value.copy() for name, value in self.task.memory(fields).items()}
        return self.task.observation(fields), outcome._replace(terminated=outcome.terminated | ~finite)

    def _restore_stopped(self, fields: dict[str, np.ndarray], stopped: np.ndarray) -> None:
        """Replace derived fields of stopped worlds, which may not be finite, by those of their last finite state."""
        good, _ = self._evaluate(np.flatnonzero(stopped), fields["qpos"][stopped], fields["qvel"][stopped])
        for name in self.task.derived:
            fields[name][stopped] = good[name]

    def close(self) -> None:
        """Release the simulations."""
        self.simulation.close()
        self._scratch.close()


def read(simulation: simengine.Simulation, name: str) -> np.ndarray:
    """A field as a NumPy copy in float64.

    Each world's values are contiguous, so that the order of a sum over them does not depend on the number of worlds.
    """
    return np.array(simulation.groups[0].to_host(simulation.field(name)), dtype=np.float64, order="C")
