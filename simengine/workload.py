"""`SimulationWorkload`: the steps of a simulation as a workload of the scheduler, for measuring executors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from simengine.group import Group
from simengine.simulation import Simulation
from simengine_scheduler import Executor, Segments, Trace
from simengine_scheduler.core import Emitter

CONTROL_SETS = 10
"""Number of sets of random controls. Steps take them in turn."""

_PUSHED = 0.02  # largest difference between a world's initial qpos and the model's qpos0 [m, rad]
_MOVED = 0.1  # largest initial velocity [m/s, rad/s]
_KEPT = ("qpos", "qvel", "act", "qacc_warmstart")


class SimulationWorkload:
    """Steps of a simulation under random controls, from states that differ from world to world.

    A simulation with emission "whole" takes whole steps. Any other takes steps kernel by kernel.

    Args:
        name: the name in reports.
        sim: the simulation. The workload owns it and closes it.
        settle: number of steps that lead to the state that `reset` restores.
        seed: seed of initial states and controls.

    Raises:
        BackendError: the simulation's backend has no kernel list.
    """

    in_turns = True
    """Whether `rewind` brings back the same lists."""

    period = CONTROL_SETS
    """Steps after which the same happens again: others would be issued together in parts that are new."""

    _takes_controls = True
    """Whether each step has controls of its own."""

    def __init__(self, name: str, sim: Simulation, settle: int = 100, seed: int = 0) -> None:
        self.name = name
        self.units = sim.num_worlds
        self.sim = sim
        self.segments: Segments = sim.schedule.segments
        self.options = sim.schedule.options
        self._whole = sim.schedule.emission == "whole"
        self._rng = np.random.default_rng(seed)
        for group in sim.groups:
            self._scatter(group)
        self._controls = [self._draw(group) for group in sim.groups]
        self._following = 0
        for _ in range(settle):
            sim.step(1, self._next(1))
        self._following = 0
        self._start = [{name: _copy(group.field(name)) for name in _KEPT} for group in sim.groups]

    def emitters(self) -> Sequence[Emitter]:
        """Return emitters of one step."""
        return self.sim.schedule.emitters()

    def run(self, executor: Executor, steps: int) -> Trace:
        """Take steps, each with the next set of controls, and return the trace of the executor's last run.

        A call of the executor takes as many steps as there are sets left before the first set comes again.
        """
        left = steps
        while left:
            n = min(left, CONTROL_SETS - self._following)
            trace = self.sim.schedule.run(executor, n, self._next(n), self._whole)
            left -= n
        return trace

    def reset(self) -> None:
        """Restore the state of every world after settling, and go back to the first set of controls."""
        self._following = 0
        for group, start in zip(self.sim.groups, self._start, strict=True):
            if group.reported.any():  # worlds that were stopped go on only once they are reset
                ctrl = _copy(group.ctrl)
                group.reset()
                group.set_state(ctrl=ctrl, **start)
            else:
                group.set_state(**start)

    def rewind(self, executor: Executor, steps: int) -> None:
        """Restore the state with which the step after the first `steps` steps begins, with that step's controls."""
        self.reset()
        if steps:
            self.run(executor, steps)
        for group, own in zip(self.sim.groups, self._controls, strict=False):  # groups that were born have none
            if own is not None and self._takes_controls:
                group.set_state(ctrl=own[self._following], qacc_warmstart=_copy(group.field("qacc_warmstart")))

    def state(self) -> bytes:
        """Return the bytes of the integration state of every world."""
        self.sim.synchronize()
        fields = [group.to_host(group.field(name)) for group in self.sim.groups for name in _KEPT]
        return b"".join(field.tobytes() for field in fields)

    def close(self) -> None:
        """Close the simulation."""
        self.sim.close()

    def _scatter(self, group: Group) -> None:
        """Give the worlds of a group initial states with small random differences."""
        model, worlds = group.model, group.num_worlds
        qpos = model.qpos0 + self._rng.uniform(-_PUSHED, _PUSHED, (worlds, model.nq))
        group.set_state(qpos=qpos, qvel=self._rng.uniform(-_MOVED, _MOVED, (worlds, model.nv)))

    def _draw(self, group: Group) -> Any:
        """Draw sets of controls in the backend's memory, (sets, num_worlds, nu). Returns None without actuators."""
        model = group.model
        if not model.nu:
            return None
        limited = np.asarray(model.actuator_ctrllimited, bool)
        low, high = np.where(limited[:, None], model.actuator_ctrlrange, (-1.0, 1.0)).T
        sets = self._rng.uniform(low, high, (CONTROL_SETS, group.num_worlds, model.nu)).astype(self.sim.dtype)
        return _copy(group.ctrl, sets)

    def _next(self, n: int) -> Any:
        """Return controls of the next `n` steps, as `Simulation.step` takes them. `n` is at most the sets left."""
        first, self._following = self._following, (self._following + n) % CONTROL_SETS
        controls = [None if own is None else own[first : first + n] for own in self._controls]
        return controls if len(controls) > 1 else controls[0]


def _copy(like: Any, values: Any = None) -> Any:
    """Return a copy of `values`, or of `like` if None, in the memory in which `like` is."""
    if isinstance(like, np.ndarray):
        return np.array(like if values is None else values)
    import cupy

    return cupy.array(like if values is None else values)
