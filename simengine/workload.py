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
"""Sets of random controls, taken in turn."""

_PUSHED = 0.02  # most by which a world's first coordinates differ from the model's [m, rad]
_MOVED = 0.1  # most speed that it starts with [m/s, rad/s]
_KEPT = ("qpos", "qvel", "act", "qacc_warmstart")


class SimulationWorkload:
    """Steps of a simulation under random controls, from states that differ from world to world.

    Steps of a simulation with emission "whole" are taken whole, others kernel by kernel.

    Args:
        name: what reports call it.
        sim: the simulation, which the workload owns.
        settle: steps before the state that `reset` restores.
        seed: of states and controls.

    Raises:
        BackendError: the simulation's backend has no kernel list.
    """

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
        """Take steps, each with the next set of controls; as many are handed over at once as there are sets left."""
        left = steps
        while left:
            n = min(left, CONTROL_SETS - self._following)
            trace = self.sim.schedule.run(executor, n, self._next(n), self._whole)
            left -= n
        return trace

    def reset(self) -> None:
        """Put every world back to the state after settling, and the controls to their first set."""
        self._following = 0
        for group, start in zip(self.sim.groups, self._start, strict=True):
            group.set_state(**start)

    def state(self) -> bytes:
        """Return the integration state of every world."""
        self.sim.synchronize()
        fields = [group.to_host(group.field(name)) for group in self.sim.groups for name in _KEPT]
        return b"".join(field.tobytes() for field in fields)

    def close(self) -> None:
        """Close the simulation."""
        self.sim.close()

    def _scatter(self, group: Group) -> None:
        """Small random differences between the first states of a group's worlds."""
        model, worlds = group.model, group.num_worlds
        qpos = model.qpos0 + self._rng.uniform(-_PUSHED, _PUSHED, (worlds, model.nq))
        group.set_state(qpos=qpos, qvel=self._rng.uniform(-_MOVED, _MOVED, (worlds, model.nv)))

    def _draw(self, group: Group) -> Any:
        """Sets of controls in the memory of the backend, (sets, num_worlds, nu); None without actuators."""
        model = group.model
        if not model.nu:
            return None
        limited = np.asarray(model.actuator_ctrllimited, bool)
        low, high = np.where(limited[:, None], model.actuator_ctrlrange, (-1.0, 1.0)).T
        sets = self._rng.uniform(low, high, (CONTROL_SETS, group.num_worlds, model.nu)).astype(self.sim.dtype)
        return _copy(group.ctrl, sets)

    def _next(self, n: int) -> Any:
        """Controls of the next `n` steps, as `Simulation.step` takes them; they do not go past the last set."""
        first, self._following = self._following, (self._following + n) % CONTROL_SETS
        controls = [None if own is None else own[first : first + n] for own in self._controls]
        return controls if len(controls) > 1 else controls[0]


def _copy(like: Any, values: Any = None) -> Any:
    """A copy of an array, or of other values, in the memory where the array is."""
    if isinstance(like, np.ndarray):
        return np.array(like if values is None else values)
    import cupy

    return cupy.array(like if values is None else values)
