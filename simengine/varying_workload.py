"""Workloads whose lists vary from step to step: groups that pause, and groups that are born and die."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from simengine.model.model import Model
from simengine.simulation import Simulation
from simengine.workload import SimulationWorkload
from simengine_scheduler import Executor, Trace

RATES = (1, 2, 4)
"""Groups take these rates in turn: they step in every step of the workload, in every second, or in every fourth."""

_PAUSES = 0.1  # probability that a group leaves out a step that it is due
_EPOCH = 40  # steps after which groups that have ended go on
_ROWS = 5 * _EPOCH  # steps after which the same groups pause again


class AsynchronousWorkload(SimulationWorkload):
    """Groups that step at three rates, pause at random, and end early. Controls stay as they are.

    Args:
        name, sim, settle, seed: as for `SimulationWorkload`.
        form: "varying", or "fixed" for steps that all groups make.
    """

    _takes_controls = False
    period = 1

    def __init__(self, name: str, sim: Simulation, settle: int = 100, seed: int = 0, form: str = "varying") -> None:
        if form not in ("varying", "fixed"):
            raise ValueError(f"unknown form {form!r}; choose varying or fixed")
        super().__init__(name, sim, settle, seed)
        groups = len(sim.groups)
        self._rows = absent(groups, seed) if form == "varying" else [[False] * groups]
        self._step = 0

    def run(self, executor: Executor, steps: int) -> Trace:
        """Take steps one at a time, each with the groups that are due, and return the trace of the last run."""
        for _ in range(steps):
            self.sim.pause(self._rows[self._step % len(self._rows)])
            self._step += 1
            trace = self.sim.schedule.run(executor, 1, None, self._whole)
        return trace

    def reset(self) -> None:
        """Restore the state after settling, and begin again with the first step."""
        self._step = 0
        super().reset()


def absent(groups: int, seed: int) -> list[list[bool]]:
    """Return for each step and each group whether the group leaves it out. At least one takes part in each step."""
    rng = np.random.default_rng(seed)
    steps, numbers = np.arange(_ROWS)[:, None], np.arange(groups)
    rates = np.array(RATES)[numbers % len(RATES)]
    waits = (steps + numbers) % rates != 0
    ends = rng.integers(_EPOCH // 2, 2 * _EPOCH, (_ROWS // _EPOCH, groups))  # in half of the epochs none
    ended = steps % _EPOCH >= np.repeat(ends, _EPOCH, axis=0)
    found = waits | ended | (rng.random((_ROWS, groups)) < _PAUSES)
    found[found.all(axis=1), 0] = False
    rows: list[list[bool]] = found.tolist()
    return rows


class GenerationsWorkload(SimulationWorkload):
    """A population in which the oldest group dies, and another model is born, every few steps.

    Args:
        name: the name in reports.
        sim: a simulation of the first models. The workload owns it and closes it.
        models: the models that are born, in their order, again and again.
        every: steps between births.
        settle, seed: as for `SimulationWorkload`.

    A birth takes a simulation some 10 ms, mostly for what no executor can save.
    """

    in_turns = False  # groups are born anew
    _takes_controls = False

    def __init__(
        self, name: str, sim: Simulation, models: Sequence[Model], every: int = 20, settle: int = 0, seed: int = 0
    ) -> None:
        super().__init__(name, sim, settle, seed)
        self._first = [(group.model, group.num_worlds) for group in sim.groups]
        self._models, self._every = list(models), every
        self.period = every
        self._step = self._born = 0

    def run(self, executor: Executor, steps: int) -> Trace:
        """Take steps one at a time, with births where they are due, and return the trace of the last run."""
        for _ in range(steps):
            self._step += 1
            if self._step % self._every == 0:
                self._replace()
            trace = self.sim.schedule.run(executor, 1, None, self._whole)
        return trace

    def reset(self) -> None:
        """Begin again with the first models, in the states that they had."""
        old = self.sim.groups
        if self._born:
            for model, worlds in self._first:
                self.sim.add_group(model, worlds)
            for group in old:
                self.sim.remove_group(group)
        self._step = self._born = 0
        super().reset()

    def _replace(self) -> None:
        """Let the oldest group die, and another be born with as many worlds."""
        oldest = self.sim.groups[0]
        self.sim.add_group(self._models[self._born % len(self._models)], oldest.num_worlds)
        self.sim.remove_group(oldest)
        self._born += 1
