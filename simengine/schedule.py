"""`Schedule`: how the steps of a simulation become kernel calls, and what runs them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from simengine.arguments import number_of_steps
from simengine.batch import Batch, Controls
from simengine.emission.calls import EmittedCall
from simengine.engines.list_programs import ListPrograms
from simengine.errors import did_you_mean
from simengine.group import Group
from simengine.plan.step_plan import StepPlan
from simengine.state.fields import INTEGRATION_STATE
from simengine_scheduler import Executor, Segments, Trace
from simengine_scheduler.core import Emitter


class Schedule:
    """How the steps of a simulation become kernel calls, and what runs them: `sim.schedule`.

    Backend "jax" compiles a step as a whole and has no kernel calls. Methods that need them raise BackendError there.
    """

    def __init__(self, batch: Batch):
        self._batch = batch

    def __repr__(self) -> str:
        return f"Schedule(executor={self.executor!r}, emission={self.emission!r}, {len(self.kernel_list)} calls)"

    @property
    def executor(self) -> str:
        """Name of the executor; "none" on backend "jax".

        While several executors are measured on the first steps, it is the one under measurement.
        """
        return self._batch.engine.executor_name

    @property
    def reason(self) -> str:
        """Why this executor runs, with the figures if it was chosen by measurement."""
        return self._batch.engine.executor_reason

    @property
    def emission(self) -> str:
        """How steps become kernels: "counted", "ahead", "whole", "stages" or "stages-ahead".

        It is "none" on backend "jax".
        """
        return self._batch.engine.emission

    def plan(self, group: int | Group = 0) -> StepPlan:
        """Return what a step of a group needs: kernels, forms of their stages, shards, and how calls are issued.

        `print(sim.schedule.plan())` shows the plan, and `sim.schedule.plan().facts()` returns it as plain values.

        Args:
            group: the group, or its index in `sim.groups`.

        Raises:
            BackendError: backend "jax" compiles a step as a whole.
            IndexError: there is no such group.
        """
        return self._batch.engine.plan(self._index(group))

    @property
    def kernel_list(self) -> list[EmittedCall]:
        """The calls of the latest step, shard after shard, with their sizes. Empty on backend "jax".

        After `step(n)` they are the calls of the last of the n steps.
        """
        return self._batch.engine.last_kernel_list()

    def counts(self, group: int | Group = 0) -> dict[str, int]:
        """Return totals of the latest count of a group: contacts, rows, and worlds by pair type and size class.

        Args:
            group: the group, or its index in `sim.groups`.

        Raises:
            IndexError: there is no such group.
        """
        return self._batch.engine.counts(self._index(group))

    def _index(self, group: int | Group) -> int:
        """Return the number by which the engine identifies a group."""
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
        """Arguments of `make_executor` for an executor that `run` takes: segments, device and others.

        Raises BackendError on backend "jax".
        """
        return self._batch.engine.needed_options()

    def emitters(self) -> list[Emitter]:
        """Return emitters of the kernel list of one step, for inspection. Use `run` to run a step.

        Raises:
            BackendError: backend "jax" has no kernel list.
        """
        return self._batch.engine.lists()

    def run(self, executor: Executor, n: int = 1, ctrl: Controls | None = None, whole_steps: bool = False) -> Trace:
        """Advance every world as `Simulation.step` does, but with an executor of the caller's.

        Args:
            executor: made by `simengine_scheduler.make_executor(name, **sim.schedule.options)`.
            n: number of steps.
            ctrl: controls, as for `Simulation.step`.
            whole_steps: issue whole steps as one call, as `Simulation.step` does. Otherwise they are issued kernel by
                kernel. Other steps are issued kernel by kernel in either case.

        Returns:
            The trace of the executor's last run. It covers one step if the controls change from step to step or steps
            are issued ahead of counts, and all steps otherwise.

        Raises:
            BackendError: backend "jax" has no kernel list.
            ValueError, NonFiniteError: as for `Simulation.step`.
        """
        _ = self.segments  # raises on backend "jax" before anything changes
        self._batch.step(n, ctrl, executor, whole_steps)
        return self._batch.engine.trace

    def steps(self, group: int | Group = 0, n: int = 1) -> Emitter:
        """Return the calls of some steps of one group, to be put among calls of one's own and run by `run_lists`.

        They may be yielded again and again, from one list or from several. Fields that `keep` names are not filled, and
        pauses do not count: who yields no calls of a group leaves it as it is.

        Args:
            group: the group, or its index in `sim.groups`.
            n: number of steps.

        Raises:
            BackendError: backend "jax" has no kernel list.
            IndexError: there is no such group.
            ValueError: `n` is not a positive integer.
        """
        _ = self.segments  # raises on backend "jax"
        return cast(ListPrograms, self._batch.engine).steps_of(self._index(group), number_of_steps(n))

    def segments_of(self, group: int | Group, *fields: str) -> tuple[int, ...]:
        """Return the segments of fields of a group, which calls of one's own name if they touch these fields.

        Args:
            group: the group, or its index in `sim.groups`.
            fields: names of state fields, such as "qpos" and "ctrl"; all of them if none is given.

        Raises:
            BackendError: backend "jax" has no kernel list.
            IndexError: there is no such group.
            ValueError: there is no such state field.
        """
        _ = self.segments  # raises on backend "jax"
        for name in fields:
            if name not in INTEGRATION_STATE:
                hint = did_you_mean(name, INTEGRATION_STATE)
                raise ValueError(f"{name!r} is not a state field{hint}; choose from {', '.join(INTEGRATION_STATE)}")
        engine = cast(ListPrograms, self._batch.engine)
        return engine.segments_of(self._index(group), fields or INTEGRATION_STATE)

    def run_lists(self, emitters: Sequence[Emitter], executor: Executor | None = None) -> Trace:
        """Run lists in which steps of groups (`steps`) stand among calls of one's own, and wait for them.

        Groups do not wait for each other here: what one list yields waits only for what it touches itself. So groups
        of different kinds step at their own pace, while others learn or are reset. Derived fields are not valid
        afterwards. Worlds whose state is not finite are found at the end of the run.

        Args:
            emitters: the lists; program order takes one call of each in turn.
            executor: made by `simengine_scheduler.make_executor(name, **sim.schedule.options)`; None for the one that
                runs the simulation's steps.

        Raises:
            BackendError: backend "jax" has no kernel list.
            NonFiniteError: as for `Simulation.step`.
        """
        _ = self.segments  # raises on backend "jax" before anything changes
        return self._batch.run_lists(emitters, executor)

    def trace_step(self, whole_steps: bool = False) -> Trace:
        """Advance every world by one step with recording on, and return what ran when (`to_chrome`, `plot`).

        Args:
            whole_steps: trace whole steps as `Simulation.step` issues them, in one or two calls. Otherwise trace them
                kernel by kernel.

        Raises:
            BackendError: backend "jax" has no kernel list.
            NonFiniteError: as for `Simulation.step`.
        """
        return self._batch.trace_step(whole_steps)
