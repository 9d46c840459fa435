"""`ListEngine`: steps groups of worlds by emitting kernel lists, which an executor runs."""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any

import numpy as np

from simengine.arrays import Array
from simengine.backends.base import Backend
from simengine.emission.calls import EmittedCall
from simengine.emission.steps import Controls, SingleStep, advance
from simengine.engines.list_controls import controls_of
from simengine.engines.list_counts import ListCounts
from simengine.engines.list_executor import ListExecutor
from simengine.engines.list_fields import arena_fields, get_field, put_field
from simengine.engines.list_groups import ListGroups
from simengine.engines.list_parameters import ListParameters
from simengine.engines.list_programs import ListPrograms
from simengine.engines.own_gpu import on_own_gpu
from simengine.engines.pauses import Pauses
from simengine.model.model_table import ModelTable
from simengine.plan.issue import Issue
from simengine.plan.memory import Footprint, footprint, require, require_state
from simengine.plan.step_plan import StepPlan
from simengine.state.fields import FIELDS
from simengine_scheduler import Executor, Segments, Trace
from simengine_scheduler.core import Emitter, KernelCall
from simengine_scheduler.executors import AutoExecutor

_ALL_FIELDS = frozenset(f.name for f in FIELDS)
_NONE = frozenset[int]()


@on_own_gpu
class ListEngine(ListPrograms, ListParameters):
    """Steps groups of worlds on backends "host" and "cuda". Its functions work on the GPU of its backend.

    Attributes:
        stores: memory of each group.
        emitters: emitters of each group's shards.
        issuing: the executor and the way of issuing, which all groups share.
        valid: for each group, the derived fields whose values are those of the latest evaluation.
        paused: groups that `step` leaves out.
    """

    def __init__(
        self,
        groups: Sequence[tuple[ModelTable, int]],
        backend: Backend,
        executor: str,
        dtype: str,
        shards: int | None,
        emission: str,
        executor_options: dict[str, Any],
    ):
        self.backend = backend
        weakref.finalize(self, _drain, backend).atexit = False  # waits for work that uses the memory to be freed
        groups = [(backend.form_of(model, dtype), num_worlds) for model, num_worlds in groups]
        self.segments = Segments()
        self._choice = ListExecutor(backend, self.segments, executor, emission, executor_options)
        self.issuing = self._choice.issuing(model for model, _ in groups)
        backend.executor_options(self.issuing.executor, 1)  # raises if this backend cannot run the executor
        self._dtype = dtype
        ListParameters.__init__(self, ListGroups(backend, self.segments, dtype, shards))
        self.stores, self.emitters = self._groups.stores, self._groups.emitters
        self.valid: dict[int, frozenset[str]] = {}
        self.paused: set[int] = set()
        self._pauses = Pauses(self.stores)
        self._single = SingleStep(())
        self._was_single = False  # whether the latest calls are those of `_single`
        self._counts = ListCounts(self.stores, self.emitters)
        require_state(groups, backend.name, backend.free_memory(), dtype)
        plans = self._groups.plan(groups, self.issuing)
        nbytes = require(plans)
        if len(plans) > 1:
            backend.expect(nbytes)
        self.valid.update(dict.fromkeys(self._groups.make(plans), frozenset()))
        self.executor = self._choice.make(self.issuing, self.emitters.values(), None)
        self.trace = Trace(self.executor_name, "off")

    def add(self, model: ModelTable, num_worlds: int) -> int:
        """Add a group and return its number. Raises BackendError, and changes nothing, if memory does not suffice."""
        self.backend.drain()
        model = self.backend.form_of(model, self._dtype)
        require_state([(model, num_worlds)], self.backend.name, self.backend.free_memory(), self._dtype)
        plans = self._groups.plan([(model, num_worlds)], self.issuing)
        require(plans)
        (group,) = self._groups.make(plans)
        self._counts.regroup()
        self.valid[group] = frozenset()
        self.issuing = self._choice.issuing(store.model for store in self.stores.values())
        self.executor = self._choice.make(self.issuing, self.emitters.values(), self.executor)
        return group

    def remove(self, group: int) -> None:
        """Wait for issued work, then remove a group and release its memory."""
        self.synchronize()
        self._single = SingleStep(())
        self._groups.remove(group)
        self._counts.regroup()
        del self.valid[group]
        self.paused.discard(group)

    def plan(self, group: int) -> StepPlan:
        """The plan of a group's step."""
        return self.stores[group].plan

    def footprint(self, group: int, num_worlds: int, keep: frozenset[str]) -> Footprint:
        """Memory that `num_worlds` worlds of a group's model take."""
        store = self.stores[group]
        (plan,) = self._groups.plan([(store.model, num_worlds)], self.issuing, without=group)
        return footprint(plan, keep)

    @property
    def emission(self) -> str:
        """How steps become kernel calls, as for `Simulation`."""
        return self.issuing.emission

    @property
    def executor_name(self) -> str:
        """The executor that runs the steps, or that is being measured."""
        executor = self.executor
        return executor.executor.name if isinstance(executor, AutoExecutor) else executor.name

    @property
    def executor_reason(self) -> str:
        """Why this executor runs the steps."""
        return self._choice.reason(self.executor)

    def needed_options(self) -> dict[str, Any]:
        """Options that executors need to run this engine's lists."""
        return self._choice.needed_options(self.executor_name, self.emitters.values())

    def step(
        self,
        n: int,
        keep: frozenset[str],
        controls: Mapping[int, Array],
        executor: Executor | None = None,
        whole_steps: bool = True,
    ) -> None:
        """Advance the worlds of all groups that are not paused by `n` steps; see `Engine.step`."""
        of_groups = controls_of(self.stores, self.backend, controls)
        each = executor is not None  # a program that gives an executor looks at single steps
        executor = executor or self.executor
        issue, active = self.issuing.issue.under(executor.name), self._active()
        issue = issue if whole_steps else issue.by_kernels
        whole = issue is Issue.STEP_KERNEL and not keep
        single = whole and n == 1 and not of_groups
        runs = executor
        if isinstance(executor, AutoExecutor) and (single or not executor.undecided):  # several are tried one by one
            runs = executor.executor
        asleep = self._pauses.stay(self.paused, whole and runs.name == "graph-cached")
        run = self._active(asleep) if asleep else active
        self.trace = self._advance(run, executor, n, keep, of_groups, issue, each, len(active))
        self._settle(executor)
        self._counts.note(active, counted=not whole)
        self.valid.update(dict.fromkeys(active, keep))

    def _advance(
        self,
        groups: Sequence[int],
        executor: Executor,
        n: int,
        keep: frozenset[str],
        controls: Sequence[Controls],
        issue: Issue,
        each: bool,
        awake: int,
    ) -> Trace:
        emitters = list(chain.from_iterable(map(self.emitters.__getitem__, self._groups.longest_first(groups))))
        self._was_single = False
        if n == 1 and issue is Issue.STEP_KERNEL and not keep and not controls:
            if emitters != self._single.emitters:
                self._single = SingleStep(emitters)
            if self._single.possible:
                self._was_single = True
                return self._single.run(executor, awake / len(groups))
        return advance(executor, emitters, issue, n, keep, controls, each)

    def lists(self) -> list[Emitter]:
        """Emitters of one step of every shard of the groups that are not paused."""
        self._was_single = False
        emitters = [emitter for group in self._active() for emitter in self.emitters[group]]
        kept, ahead = frozenset[str](), self.issuing.issue.is_ahead
        return [e.ahead(kept) if ahead and e.can_go_ahead else e.steps(1, kept) for e in emitters]

    def forward(self) -> None:
        """Fill every derived field from the state."""
        self._run([emitter.forward() for shards in self.emitters.values() for emitter in shards])
        self._counts.note_all()
        self.valid.update(dict.fromkeys(self.valid, _ALL_FIELDS))

    def _active(self, although_paused: frozenset[int] = _NONE) -> list[int]:
        """The groups that do not pause, and some others."""
        if len(although_paused) == len(self.paused):
            return list(self.stores)
        left_out = self.paused - although_paused
        return [group for group in self.stores if group not in left_out]

    def _run(self, emitters: list[Any]) -> None:
        self._was_single = False
        self.trace = self.executor.run(emitters)
        self._settle(self.executor)

    def _settle(self, executor: Executor) -> None:
        """Wait for work on the host, whose arrays are plain memory. Release arrays that grown arenas have replaced."""
        if self.backend.name == "host":
            executor.synchronize()
        for store in self.stores.values():
            if store.retired:
                self.backend.synchronize()
                store.retired.clear()

    def traced_step(self, keep: frozenset[str], whole_steps: bool) -> Trace:
        """Take one step with an executor that records times, and return its trace; see `Engine.traced_step`."""
        active = self._active()
        self._pauses.wake()
        executor = self._choice.recording(self.executor_name)
        issue = self.issuing.issue if whole_steps else self.issuing.issue.by_kernels
        try:
            trace = self._advance(active, executor, 1, keep, (), issue, True, len(active))
            executor.synchronize()
        finally:
            executor.close()
        self._counts.note(active, counted=bool(keep))
        self.valid.update(dict.fromkeys(active, keep))
        return trace

    def last_kernel_list(self) -> list[EmittedCall]:
        """Calls of the latest step or forward evaluation, shard after shard."""
        if self._was_single:
            self._single.begin_logs()
        return [entry for group in self._active() for emitter in self.emitters[group] for entry in emitter.log]

    def get(self, group: int, name: str) -> Array:
        """The array of a world field."""
        return get_field(self.stores[group], name, self.backend)

    def put(self, group: int, name: str, worlds: np.ndarray | None, values: Array | np.ndarray | float) -> None:
        """Write a world field of all worlds, or of those with the given indices."""
        put_field(self.stores[group], name, worlds, values, self.backend)

    def arena(self, group: int, world: int, names: Sequence[str], counter: str, address: str) -> dict[str, np.ndarray]:
        """The entries of one world in arena fields, on the host."""
        return arena_fields(self.stores[group], world, names, counter, address, self.backend)

    def num_shards(self, group: int) -> int:
        """Number of shards into which a group's worlds are split."""
        return len(self.emitters[group])

    def bad_worlds(self, group: int) -> int:
        """Number of frozen worlds at the latest count."""
        return self._counts.bad_worlds(group, self._run_counts)

    def has_bad_worlds(self) -> bool:
        """Whether a group has frozen worlds at the latest count."""
        return self._counts.has_bad_worlds(self._run_counts)

    def counts(self, group: int) -> dict[str, int]:
        """Totals of the latest count over the group's shards, by name of the column."""
        return self._counts.totals(group, self._run_counts)

    def _run_counts(self, calls: Sequence[KernelCall]) -> None:
        self.executor.run([[call] for call in calls])
        self.synchronize()

    def nbytes(self) -> int:
        """Memory of models, parameters, fields and arenas [bytes]."""
        own = sum(parameters.nbytes() for parameters in self.parameters.values())
        return own + sum(store.nbytes() for store in self.stores.values())

    def synchronize(self) -> None:
        """Wait until all work issued so far has completed."""
        self.executor.synchronize()
        self.backend.synchronize()

    def close(self) -> None:
        """Wait for issued work, which uses the engine's memory, then release threads and streams."""
        _drain(self.backend)
        self.executor.close()


def _drain(backend: Backend) -> None:
    with suppress(Exception):  # an error of the device was raised by the call that failed
        backend.drain()
