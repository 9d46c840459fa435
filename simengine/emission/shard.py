"""The emission generator of one shard: a step as a list of kernel calls that depends on the contacts found.

    position ── scan ─────────── counts ──┬── narrowphase of each pair type that occurs ──┐
        └────── smooth ───────────────────┴───────────────────────────────────────────────┴── finish, per size class
                                                                                           └── advance, without rows

One evaluation of the dynamics emits `position`, `scan` and `smooth`, awaits the counts, then emits exactly the work
that exists. Where actuators pull at contacts, `smooth` follows the narrowphase. RK4 repeats it four times. Where
integration is not fused into `finish` and `advance`, a kernel of the integrator alone follows for all worlds.

Few worlds take less time than the wait, and are stepped *ahead* of the counts: all that a step may need is issued at
once, as one fixed list, with one `finish` for the worlds of all bounded classes. Calls for which there is no work end
at once. Where arenas turn out to lack room for what was counted, everything after the count does nothing, so that the
host finds the shard as it was, makes room, and has the remaining evaluations emitted by their counts.

A step may also be one call, *whole*. On the host it is a program: what is emitted by the counts runs without Python in
between. On the GPU it is a kernel in which a block makes all steps of its world or worlds, where these are few and the
model simple (`simengine.kernels.step_kernel`); other worlds are stepped ahead then. Fields that must be valid
afterwards come from kernels of their own: the last step is one ahead, if there are any.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import cast

import numpy as np

from simengine.emission.binding import BoundAwait, BoundEvaluation, BoundLaunch, bind
from simengine.emission.calls import CallFactory, EmittedCall, Shard
from simengine.emission.step_calls import StepCalls
from simengine.emission.store import GroupStore
from simengine.emission.whole import WholeStep, whole_step
from simengine.state.fields import COLUMNS, FIELDS
from simengine_scheduler import AwaitCounts, CudaLaunch, FixedList, HostLaunch, KernelCall
from simengine_scheduler.core.calls import Item

ALL_FIELDS = frozenset(f.name for f in FIELDS)
_COLUMN_OF_BAD = COLUMNS.index("bad")


class ShardEmitter:
    """Emits the steps of one shard, as the plan of its group says.

    Attributes:
        factory: makes calls over worlds of the shard.
        bad_worlds: frozen worlds at the latest count.
    """

    def __init__(
        self,
        store: GroupStore,
        shard: Shard,
        factory: CallFactory,
        island_factories: tuple[CallFactory, ...] = (),
    ):
        self._store = store
        self.factory = factory
        self._island_factories = island_factories
        self._plan = store.plan
        steps = store.plan.step_kernel
        self._step_calls = None if steps is None else StepCalls(store, factory, steps)
        self.shard = shard
        self._log: list[EmittedCall] = []
        self._latest_whole: WholeStep | None = None
        self.bad_worlds = 0
        self._totals: np.ndarray = store.totals_host[shard.place]
        self._bound: dict[tuple[str, int, frozenset[str], bool], BoundEvaluation] = {}
        self._whole_steps: dict[frozenset[str], WholeStep] = {}
        self._lists: dict[tuple[frozenset[str], int, bool, bool], tuple[FixedList, list[EmittedCall]]] = {}
        self._progress: np.ndarray = store.progress_host[shard.place]
        self._passed: tuple[int, int] = (0, 0)
        self._note_passed()

    @property
    def log(self) -> list[EmittedCall]:
        """Calls of the latest step, in program order."""
        return self._log if self._latest_whole is None else self._latest_whole.log()

    def _begin_log(self, log: list[EmittedCall]) -> None:
        self._log, self._latest_whole = log, None

    @property
    def stages(self) -> int:
        """Evaluations of a step."""
        return self._plan.evaluations

    def steps(self, n: int, keep: frozenset[str], done: int = 0) -> Iterator[Item]:
        """Emit `n` steps but for the `done` evaluations; after the last one the fields of `keep` are valid in memory.

        What is sensed belongs to the first evaluation of the last step, all else to its last evaluation.
        """
        integrator = self._store.model.opt_integrator
        for number in range(done, n * self.stages):
            step, rk_stage = divmod(number, self.stages)
            if rk_stage == 0 or number == done:
                self._begin_log([])
            wanted = self._plan.wanted_of(keep, rk_stage) if step == n - 1 else frozenset()
            yield from self._evaluate(self._evaluation(integrator, rk_stage, wanted))

    @property
    def can_go_ahead(self) -> bool:
        """Whether steps may be issued before their counts are known: islands are counted a second time."""
        return self._plan.can_go_ahead

    def ahead(self, keep: frozenset[str], rounds: int = 1, controlled: bool = False, whole: bool = False) -> FixedList:
        """The calls of steps, issued before their counts are known; `arrive` tells how far such steps have come.

        Args:
            keep: what is valid in memory after the last.
            rounds: number of steps.
            controlled: each has its own controls, those of the store that are ahead.
            whole: by a kernel of whole steps, if the shard has one.
        """
        key = (keep, rounds, controlled, whole)
        if key not in self._lists:
            make = self._steps_whole if whole and self._step_calls else self._steps_ahead
            steps = make(keep, rounds, controlled)
            log = [EmittedCall(call, self.shard.size) for call in steps[-1]]
            self._lists[key] = FixedList(call for calls in steps for call in calls), log
        fixed, log = self._lists[key]
        self._begin_log(log)
        return fixed

    def _steps_whole(self, keep: frozenset[str], rounds: int, controlled: bool) -> list[Sequence[KernelCall]]:
        """Calls of as many steps as one kernel can make, and of the last one where something is to be kept."""
        assert self._step_calls is not None
        number = rounds - bool(keep)
        steps: list[Sequence[KernelCall]] = [self._step_calls.make(number, controlled)] if number else []
        if keep:
            last = self._step_ahead(keep)
            steps.append(self._controlled(last, number, rounds) if controlled else last)
        return steps

    def _steps_ahead(self, keep: frozenset[str], rounds: int, controlled: bool) -> list[Sequence[KernelCall]]:
        """Calls of each step."""
        last = self._step_ahead(keep)
        steps: list[Sequence[KernelCall]] = [*[self._step_ahead(frozenset()) if keep else last] * (rounds - 1), last]
        if not controlled:
            return steps
        return [self._controlled(calls, number, rounds) for number, calls in enumerate(steps)]

    def _step_ahead(self, keep: frozenset[str]) -> list[KernelCall]:
        integrator, worlds = self._store.model.opt_integrator, self.shard.size
        calls = []
        for rk_stage in range(self.stages):
            bound = self._evaluation(integrator, rk_stage, self._plan.wanted_of(keep, rk_stage), True)
            calls += [item.call.sized(worlds) for item in bound if isinstance(item, BoundLaunch)]
        return calls

    def _controlled(self, calls: Sequence[KernelCall], number: int, rounds: int) -> list[KernelCall]:
        """Calls that read the controls of a step from those that are ahead."""
        ctrl = self._store.buffer("ctrl")
        ahead = (self._store.controls_ahead(rounds)[1], number * ctrl.nbytes)
        launches = (cast("CudaLaunch | HostLaunch", call.launch).with_argument(ctrl, ahead) for call in calls)
        return [replace(call, launch=launch) for call, launch in zip(calls, launches, strict=True)]

    def whole(self, keep: frozenset[str]) -> KernelCall:
        """A step as one call, on the host; `arrive_whole` takes notice of what it found."""
        if keep not in self._whole_steps:
            integrator = self._store.model.opt_integrator
            wanted = (self._plan.wanted_of(keep, stage) for stage in range(self.stages))
            evaluations = [self._evaluation(integrator, stage, own) for stage, own in enumerate(wanted)]
            self._whole_steps[keep] = whole_step(self._store, self.shard, evaluations)
        self._latest_whole = self._whole_steps[keep]
        return self._latest_whole.call

    def arrive_whole(self) -> None:
        """After whole steps: note the worlds that are frozen."""
        self.bad_worlds = int(self._totals[_COLUMN_OF_BAD])

    def arrive(self, n: int, keep: frozenset[str], whole: bool = False) -> int:
        """After n steps ahead of their counts: how many evaluations are done, since this was last asked.

        Where that is not all of them, arenas have room for those that come next, and the shard may go on. Whole steps
        need no room in arenas.
        """
        passed, full = self._note_passed()
        if whole and self._step_calls:
            passed += (n - bool(keep)) * self.stages
        self.bad_worlds = int(self._totals[_COLUMN_OF_BAD])
        if full:
            totals = self._totals.tolist()
            self._store.arena("contact", self.shard.place).reserve(totals[COLUMNS.index("ncon")])
            self._store.arena("row", self.shard.place).reserve(totals[COLUMNS.index("nefc")])
            self._store.array("progress")[self.shard.place, :2] = 0
        return passed

    def _note_passed(self) -> tuple[int, bool]:
        """Evaluations that had room since this was last called, and whether the latest had none."""
        contacts_full, rows_full, contacts, rows = self._progress.tolist()
        before, self._passed = self._passed, (contacts, rows)
        # numbers on the device start again after 2^32
        passed = min((contacts - before[0]) % 2**32, (rows - before[1]) % 2**32)
        return passed, bool(contacts_full or rows_full)

    def forward(self) -> Iterator[Item]:
        """Emit one evaluation that stores every field and integrates nothing."""
        self._begin_log([])
        yield from self._evaluate(self._evaluation("", 0, ALL_FIELDS))

    def _evaluate(self, bound: BoundEvaluation) -> Iterator[Item]:
        place, counts = self.shard.place, dict[str, list[int]]()
        for item in bound:
            if isinstance(item, BoundAwait):
                yield AwaitCounts(item.scan.call)
                for space, (table, first, number) in item.needs:
                    counts[table] = self._store.host_counts(table)[place].tolist()
                    self._store.arena(space, place).reserve(sum(counts[table][first : first + number]))
                self.bad_worlds = int(self._totals[_COLUMN_OF_BAD])
                continue
            units = item.units if item.counted is None else counts[item.counted.table][item.counted.first]
            if units:
                call = item.call.sized(units)
                self._log.append(EmittedCall(call, units))
                yield call

    def _evaluation(
        self, integrator: str, rk_stage: int, wanted: frozenset[str], ahead: bool = False
    ) -> BoundEvaluation:
        key = (integrator, rk_stage, wanted, ahead)
        if key not in self._bound:
            evaluation = self._plan.evaluation(self.shard.size, *key)
            self._bound[key] = bind(evaluation, self.factory, self._island_factories)
        return self._bound[key]
