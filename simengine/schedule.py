"""`Schedule`: how the steps of a simulation become kernel calls, and what runs them."""

from __future__ import annotations

from typing import Any

from simengine.batch import Batch, Controls
from simengine.emission.calls import EmittedCall
from simengine.group import Group
from simengine.plan.step_plan import StepPlan
from simengine_scheduler import Executor, Segments, Trace
from simengine_scheduler.core import Emitter


class Schedule:
    """How the steps of a simulation become kernel calls, and what runs them: `sim.schedule`.

    Backend "jax" compiles steps as a whole and has no kernel calls: what needs them raises BackendError there.
    """

    def __init__(self, batch: Batch):
        self._batch = batch

    def __repr__(self) -> str:
        return f"Schedule(executor={self.executor!r}, emission={self.emission!r}, {len(self.kernel_list)} calls)"

    @property
    def executor(self) -> str:
        """Name of the executor; where several are tried on the first steps, of that whose turn it is.

        "none" on backend "jax".
        """
        return self._batch.engine.executor_name

    @property
    def reason(self) -> str:
        """Why it is this executor, with figures where it was measured."""
        return self._batch.engine.executor_reason

    @property
    def emission(self) -> str:
        """How steps become kernels: "counted", "ahead" or "whole"; "none" on backend "jax"."""
        return self._batch.engine.emission

    def plan(self, group: int | Group = 0) -> StepPlan:
        """What a step of a group needs: kernels and the forms of their stages, shards, and how calls are issued.

        `print(sim.schedule.plan())` shows it, and `sim.schedule.plan().facts()` are its plain values.

        Args:
            group: the group, or its place in `sim.groups`.

        Raises:
            BackendError: backend "jax" compiles a step as a whole.
        """
        return self._batch.engine.plan(self._index(group))

    @property
    def kernel_list(self) -> list[EmittedCall]:
        """The calls of the latest step (the last one of `step(n)`), shard after shard, with their sizes.

        Empty on backend "jax".
        """
        return self._batch.engine.last_kernel_list()

    def counts(self, group: int | Group = 0) -> dict[str, int]:
        """Totals of the latest count of a group: contacts, rows, and worlds by pair type and size class.

        Args:
            group: the group, or its place in `sim.groups`.
        """
        return self._batch.engine.counts(self._index(group))

    def _index(self, group: int | Group) -> int:
        """The number under which the engine knows a group."""
        groups = self._batch.groups
        if not isinstance(group, Group) and not 0 <= group < len(groups):
            raise IndexError(f"there is no group {group!r}; sim.groups has {len(groups)}")
        return (group if isinstance(group, Group) else groups[group]).index

    @property
    def segments(self) -> Segments:
        """The table of the kernel list's segments. Raises BackendError on backend "jax"."""
        return self._batch.engine.segments

    @property
    def options(self) -> dict[str, Any]:
        """What `make_executor` needs for an executor to `run`: segments, device and others.

        Raises BackendError on backend "jax".
        """
        return self._batch.engine.needed_options()

    def emitters(self) -> list[Emitter]:
        """Emitters of the kernel list of one step, to look at; `run` runs it. Raises BackendError on backend "jax"."""
        return self._batch.engine.lists()

    def run(self, executor: Executor, n: int = 1, ctrl: Controls | None = None, as_issued: bool = False) -> Trace:
        """Advance every world as `Simulation.step` does, through an executor of the caller's.

        Args:
            executor: one of `simengine_scheduler.make_executor(name, **sim.schedule.options)`.
            n: number of steps.
            ctrl: controls, as for `Simulation.step`.
            as_issued: take whole steps as `Simulation.step` does, where these are whole, and not kernel by kernel.

        Returns:
            The trace of the executor's last run, which is of one step where controls change or steps go ahead of their
            counts, else of all.

        Raises:
            BackendError: backend "jax" has no kernel list.
            ValueError, NonFiniteError: as for `Simulation.step`.
        """
        _ = self.segments  # so that backend "jax" refuses before anything changes
        self._batch.step(n, ctrl, executor, as_issued)
        return self._batch.engine.trace

    def trace_step(self, as_issued: bool = False) -> Trace:
        """Advance every world by one step with recording on, and return what ran when (`to_chrome`, `plot`).

        Args:
            as_issued: trace whole steps as they are issued, a call or two, and not kernel by kernel.

        Raises:
            BackendError: backend "jax" has no kernel list.
            NonFiniteError: as for `Simulation.step`.
        """
        return self._batch.trace_step(as_issued)
