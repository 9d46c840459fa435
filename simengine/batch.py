"""`Batch`: the groups of a simulation, and how they advance together."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import TypeAlias, cast

from simengine.arguments import number_of_steps
from simengine.arrays import Array, ArrayLike
from simengine.engines.engine import Engine
from simengine.engines.list_programs import ListPrograms
from simengine.errors import NonFiniteError
from simengine.group import Group
from simengine.interrupts import Deferred
from simengine_scheduler import Executor, Trace
from simengine_scheduler.core import Emitter

Controls: TypeAlias = ArrayLike | Sequence[ArrayLike | None]
"""Controls of the only group, or a list with the controls of each group."""


_LONGEST_WAIT = 0.25  # seconds of steps between two places at which Ctrl-C acts


class Batch:
    """The groups of a simulation, and how they advance together.

    Args:
        engine: steps the groups.
        groups: the groups.
        keep: derived fields that are valid after a step.
        on_nonfinite: what happens to a world whose state is not finite: "raise", "freeze" or "reset".

    Attributes:
        groups: the groups.
        keep: derived fields that are valid after a step.
    """

    def __init__(self, engine: Engine, groups: tuple[Group, ...], keep: frozenset[str], on_nonfinite: str):
        self._engine = engine
        self._closed = False
        self._on_nonfinite = on_nonfinite
        self._piece = 16  # steps that are made together, at whose end Ctrl-C acts; follows from the time of a step
        self.groups = groups
        self.keep = keep

    @property
    def engine(self) -> Engine:
        """The engine that steps the groups. Raises RuntimeError once the simulation is closed."""
        if self._closed:
            raise RuntimeError("this simulation is closed; make a new Simulation")
        return self._engine

    @property
    def is_closed(self) -> bool:
        """Whether `close` was called."""
        return self._closed

    def single(self, what: str) -> Group:
        """Return the only group. Raises ValueError, which names the operation `what`, if there are several groups."""
        if len(self.groups) != 1:
            raise ValueError(f"{what} needs to know the group of a simulation of several models; use sim.groups[i]")
        return self.groups[0]

    def step(self, n: int, ctrl: Controls | None, executor: Executor | None = None, whole_steps: bool = True) -> None:
        """Advance by `n` steps; see `Simulation.step` and `Schedule.run`."""
        steps = number_of_steps(n)
        sequences = {} if ctrl is None else self._take(steps, ctrl)
        with Deferred() as interrupt:
            done = 0
            while done < steps and not interrupt.arrived:
                piece = min(self._piece, steps - done) if executor is None else steps
                keep = self.keep if done + piece == steps else frozenset[str]()
                part = {group: own[done : done + piece] for group, own in sequences.items()}
                began = perf_counter()
                self.engine.step(piece, keep, part, executor, whole_steps)
                # a power of two, since lists of several steps may be kept by their number
                self._piece = 1 << max(1, int(_LONGEST_WAIT * piece / (perf_counter() - began))).bit_length() - 1
                done += piece
        self._check_worlds()

    def run_lists(self, emitters: Sequence[Emitter], executor: Executor | None) -> Trace:
        """Run lists that have steps of groups; see `Schedule.run_lists`."""
        engine = cast(ListPrograms, self.engine)
        with Deferred():
            engine.run_lists(emitters, executor)
        self._check_worlds()
        return engine.trace

    def forward(self) -> None:
        """Fill every derived field from the state without integrating."""
        with Deferred():
            self.engine.forward()
        self._check_worlds()

    def trace_step(self, whole_steps: bool) -> Trace:
        """Advance by one step and return what ran when."""
        with Deferred():
            trace = self.engine.traced_step(self.keep, whole_steps)
        self._check_worlds()
        return trace

    def close(self) -> None:
        """Release threads and streams. A second call does nothing."""
        if not self._closed:
            self._closed = True
            self._engine.close()
            for group in self.groups:
                group.leave("belongs to a simulation that is closed; make a new Simulation")

    def _take(self, n: int, ctrl: Controls) -> dict[int, Array]:
        """Check controls. Set those that all steps share, and return the others, (n, num_worlds, nu), by group."""
        groups, given = self.groups, ctrl
        if not isinstance(given, list | tuple) or len(groups) == 1:
            groups, given = (self.single("step(ctrl=...)"),), [cast(ArrayLike, ctrl)]
        if len(given) != len(groups):
            raise ValueError(
                f"step(ctrl=...) got controls of {len(given)} groups and there are {len(groups)}; give one per group"
            )
        pairs = zip(groups, cast("Sequence[ArrayLike | None]", given), strict=True)
        taken = [(group.index, group.controls(n, own)) for group, own in pairs if own is not None]
        for group, own in taken:
            if own.ndim < 3:
                self.engine.put(group, "ctrl", None, own)
        return {group: own for group, own in taken if own.ndim == 3}

    def _check_worlds(self) -> None:
        if self._on_nonfinite == "freeze" or not self._engine.has_bad_worlds():
            return
        for group in self.groups:
            worlds, stages = group.newly_flagged()
            if worlds and self._on_nonfinite == "reset":
                group.reset(worlds)
            elif worlds:
                raise NonFiniteError(worlds, stages, group.model.name)
