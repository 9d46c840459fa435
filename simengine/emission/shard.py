"""`ShardEmitter`: emits the steps of one shard as kernel calls.

    position ── scan ─────────── counts ──┬── narrowphase of each pair type that occurs ──┐
        └────── smooth ───────────────────┴───────────────────────────────────────────────┴── finish, per size class
                                                                                           └── advance, without rows

There are three ways of emission.

*Counted.* An evaluation emits `position`, `scan` and `smooth`, waits for the counts, and then emits exactly the calls
that have work. RK4 has four evaluations in a step. If a model has adhesion actuators, `smooth` needs the contacts and
follows the narrowphase. If the integrator is not fused into `finish` and `advance`, a kernel of its own follows.

*Ahead of counts.* All calls that a step may need are issued at once, as a fixed list. A call without work ends early.
In a shard of few worlds, one `finish` serves all bounded size classes. If an arena is too small for what was counted,
the calls after the count do not change the state. The host then grows the arena and emits the remaining evaluations by
counts.

*Whole.* A step is one call. On a CPU it is a program that makes the calls of the counted way without Python. On a GPU
it is a kernel in which a block makes all steps of its worlds, if the model is simple and the worlds are few
(`simengine.kernels.step_kernel`). Other worlds are stepped ahead of counts. The kernel stores no derived fields, so if
some are wanted, the last step is made ahead of counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import cast

import numpy as np

from simengine.backends.host_program import Rows
from simengine.emission.binding import BoundAwait, BoundEvaluation, BoundLaunch, bind
from simengine.emission.calls import CallFactory, EmittedCall, Shard
from simengine.emission.counted import CountedSteps
from simengine.emission.step_calls import StepCalls
from simengine.emission.store import GroupStore
from simengine.emission.whole import WholeStep, whole_step
from simengine.plan.evaluation import only_for
from simengine.state.fields import COLUMNS, FIELDS, PROGRESS, TOTAL_OF, TOTALS, WORLD_ARENAS
from simengine.state.island_fields import COLUMN_OF_ARENA
from simengine_scheduler import AwaitCounts, CudaLaunch, FixedList, HostLaunch, KernelCall
from simengine_scheduler.core import Emitter
from simengine_scheduler.core.calls import Item

ALL_FIELDS = frozenset(f.name for f in FIELDS)
_COLUMN_OF_BAD = COLUMNS.index("bad")
_FLAGS = len(WORLD_ARENAS)  # words of the progress that say whether an arena is full
_NOTHING = frozenset[str]()
_LISTED = 8  # steps by counts, at most, that are one list


class ShardEmitter:
    """Emits the steps of one shard, as the plan of its group says.

    Args:
        store: memory of the group.
        shard: the worlds to step.
        factory: makes calls over worlds of the shard.
        island_factories: make calls over islands of the shard, one for each size class.

    Attributes:
        factory: as given.
        shard: as given.
        evaluations: number of evaluations in a step.
        can_go_ahead: whether steps may be issued ahead of counts.
        bad: its first entry is the number of worlds that were stopped, at the latest count. After whole steps it is one
            if there is such a world, until `count_call` has run.
        has_step_kernel: whether a kernel can make whole steps. Its steps use no arenas, so none is ever missing.
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
        self.evaluations = store.plan.evaluations
        self.can_go_ahead = store.plan.can_go_ahead
        steps = store.plan.step_kernel
        self._step_calls = None if steps is None else StepCalls(store, factory, steps)
        self.has_step_kernel = steps is not None
        self.shard = shard
        self._log: list[EmittedCall] = []
        self._latest: WholeStep | CountedSteps | None = None  # which has the log instead
        self._totals: np.ndarray = store.totals_host[shard.index_in_group]
        self.bad = memoryview(self._totals)[_COLUMN_OF_BAD:]  # of which one entry is read faster than of an array
        self._bound: dict[tuple[str, int, frozenset[str], bool], BoundEvaluation] = {}
        self._whole_steps: dict[frozenset[str], WholeStep] = {}
        self._counted_steps: dict[tuple[frozenset[str], int], CountedSteps] = {}
        self._next_steps: dict[bool, tuple[FixedList, list[EmittedCall]]] = {}
        self._lists: dict[tuple[frozenset[str], int, bool, bool], tuple[FixedList, list[EmittedCall]]] = {}
        self._progress = memoryview(store.progress_host[shard.index_in_group])
        self._passed: list[int] = [0] * (len(PROGRESS) if store.model.has_islands else 2 * _FLAGS)
        self._note_passed()

    @property
    def log(self) -> list[EmittedCall]:
        """Calls of the latest step, in program order."""
        return self._log if self._latest is None else self._latest.log()

    def _begin_log(self, log: list[EmittedCall]) -> None:
        self._log, self._latest = log, None

    def steps(self, n: int, keep: frozenset[str], done: int = 0) -> Emitter:
        """Emit steps by counts. A few steps are a counted list, which compiled code can run.

        Args:
            n: number of steps.
            keep: derived fields that must be valid after the last step. Sensor values come from the first evaluation of
                that step, other fields from its last evaluation.
            done: number of evaluations that have been made already and are left out.
        """
        if n <= _LISTED and done == 0:
            steps = self._counted_steps.get((keep, n))
            if steps is None:
                steps = self._counted_steps[keep, n] = self._make_counted(keep, n)
            self._latest = steps
            return steps.list
        return self._emit_steps(n, keep, done)

    def _emit_steps(self, n: int, keep: frozenset[str], done: int) -> Iterator[Item]:
        integrator = self._store.model.opt_integrator
        for number in range(done, n * self.evaluations):
            step, rk_stage = divmod(number, self.evaluations)
            if rk_stage == 0 or number == done:
                self._begin_log([])
            wanted = self._plan.wanted_of(keep, rk_stage) if step == n - 1 else frozenset()
            yield from self._evaluate(self._evaluation(integrator, rk_stage, wanted))

    def ahead(self, keep: frozenset[str], rounds: int = 1, controlled: bool = False, whole: bool = False) -> FixedList:
        """The calls of steps that are issued ahead of counts. `arrive` says how many evaluations were made.

        Args:
            keep: derived fields that must be valid after the last step.
            rounds: number of steps.
            controlled: whether each step reads its own controls, from `GroupStore.controls_ahead`.
            whole: whether to use the kernel of whole steps, if the shard has one.
        """
        key = (keep, rounds, controlled, whole)
        made = self._lists.get(key)
        if made is None:
            make = self._steps_whole if whole and self._step_calls else self._steps_ahead
            steps = make(keep, rounds, controlled)
            log = [EmittedCall(call, self.shard.size) for call in steps[-1]]
            made = self._lists[key] = FixedList(call for calls in steps for call in calls), log
        self._begin_log(made[1])
        return made[0]

    def step_ahead(self, whole: bool) -> FixedList:
        """The list of `ahead` for one step after which no derived fields must be valid."""
        made = self._next_steps.get(whole)
        if made is None:
            fixed = self.ahead(_NOTHING, whole=whole)
            made = self._next_steps[whole] = fixed, self._log
        self._log, self._latest = made[1], None
        return made[0]

    def _steps_whole(self, keep: frozenset[str], rounds: int, controlled: bool) -> list[Sequence[KernelCall]]:
        """Calls of steps by one kernel. If fields must be valid afterwards, a list of kernels makes the last step."""
        assert self._step_calls is not None
        number = rounds - bool(keep)
        steps: list[Sequence[KernelCall]] = [(self._step_calls.make(number, controlled),)] if number else []
        if keep:
            last = self._step_ahead(keep)
            steps.append(self._controlled(last, number, rounds) if controlled else last)
        return steps

    def _steps_ahead(self, keep: frozenset[str], rounds: int, controlled: bool) -> list[Sequence[KernelCall]]:
        """The calls of each step."""
        last = self._step_ahead(keep)
        steps: list[Sequence[KernelCall]] = [*[self._step_ahead(frozenset()) if keep else last] * (rounds - 1), last]
        if not controlled:
            return steps
        return [self._controlled(calls, number, rounds) for number, calls in enumerate(steps)]

    def _step_ahead(self, keep: frozenset[str]) -> list[KernelCall]:
        integrator, calls = self._store.model.opt_integrator, []
        for rk_stage in range(self.evaluations):
            bound = self._evaluation(integrator, rk_stage, self._plan.wanted_of(keep, rk_stage), True)
            calls += [item.call.sized(item.units) for item in bound if isinstance(item, BoundLaunch)]
        return calls

    def _controlled(self, calls: Sequence[KernelCall], number: int, rounds: int) -> list[KernelCall]:
        """The calls of step `number`, which read that step's controls from `GroupStore.controls_ahead`."""
        ctrl = self._store.buffer("ctrl")
        ahead = (self._store.controls_ahead(rounds)[1], number * ctrl.nbytes)
        launches = (cast("CudaLaunch | HostLaunch", call.launch).with_argument(ctrl, ahead) for call in calls)
        return [replace(call, launch=launch) for call, launch in zip(calls, launches, strict=True)]

    def whole(self, keep: frozenset[str]) -> KernelCall:
        """A whole step as one call on a CPU.

        Args:
            keep: derived fields that must be valid after the step.
        """
        step = self._latest = self.whole_step(keep)
        return step.call

    def several_whole(self, keep: frozenset[str], n: int, controls: np.ndarray | None) -> KernelCall:
        """Whole steps as one call on a CPU.

        Args:
            keep: derived fields that must be valid after each step.
            n: number of steps, at least one.
            controls: controls of at least `n` steps, (steps, worlds of the group, nu), contiguous and of the type of
                `ctrl`; None if the steps share the field.
        """
        step = self._latest = self.whole_step(keep)
        worlds = slice(self.shard.begin, self.shard.end)
        rows = None if controls is None else Rows(controls[:, worlds], self._store.array("ctrl")[worlds])
        step.repeated.set(n, rows)
        return step.several

    def whole_step(self, keep: frozenset[str]) -> WholeStep:
        """A whole step as one call on a CPU, with the program that it runs.

        Args:
            keep: derived fields that must be valid after the step.
        """
        if keep not in self._whole_steps:
            integrator = self._store.model.opt_integrator
            wanted = (self._plan.wanted_of(keep, stage) for stage in range(self.evaluations))
            evaluations = [self._evaluation(integrator, stage, own) for stage, own in enumerate(wanted)]
            self._whole_steps[keep] = whole_step(self._store, self.shard, evaluations)
        return self._whole_steps[keep]

    def evaluation_program(self, wanted: frozenset[str]) -> WholeStep:
        """One evaluation of the store's chosen worlds as one call on a CPU, which does not integrate.

        It makes only the calls that the wanted fields need.

        Args:
            wanted: derived fields that it stores.
        """
        return whole_step(self._store, self.shard, [self._evaluation_of_chosen(wanted, False)])

    def evaluation_ahead(self, wanted: frozenset[str]) -> FixedList:
        """The calls of one evaluation of the store's chosen worlds ahead of counts, which does not integrate.

        It has only the calls that the wanted fields need.

        Args:
            wanted: derived fields that it stores.
        """
        bound = self._evaluation_of_chosen(wanted, True)
        return FixedList(item.call.sized(item.units) for item in bound if isinstance(item, BoundLaunch))

    @property
    def count_call(self) -> KernelCall | None:
        """Adds up the counts of the latest step, if a kernel made it whole. None if the shard has no such kernel."""
        return None if self._step_calls is None else self._step_calls.count

    @property
    def bad_worlds(self) -> int:
        """Number of worlds that were stopped, at the latest count."""
        return self.bad[0]

    def arrive(self, n: int, keep: frozenset[str], whole: bool = False) -> int:
        """Find out, after steps ahead of counts have run, how many evaluations they made.

        If some are missing, this grows the arenas for the next evaluation, so that the shard can go on.

        Args:
            n: number of steps that were issued since the last call.
            keep, whole: as given to `ahead`.

        Returns:
            The number of evaluations made since the last call.
        """
        by_steps = (n - bool(keep)) * self.evaluations if whole and self._step_calls else 0
        if by_steps and not keep:
            return by_steps
        passed, full = self._note_passed()
        passed += by_steps
        if full:
            totals = self._totals.tolist()
            for space in WORLD_ARENAS:
                total = totals[TOTALS.index(TOTAL_OF[space])]
                self._store.arena(space, self.shard.index_in_group).reserve(total)
            self._make_room_for_islands()
            self._store.array("progress")[self.shard.index_in_group, :_FLAGS] = 0
        return passed

    def _make_room_for_islands(self) -> None:
        """Make room for the islands of the latest count. If rows did not fit, they are of an evaluation before it."""
        place, store = self.shard.index_in_group, self._store
        for space, arenas in store.islands.items():
            arenas[place].reserve(int(store.island_totals_host[place, COLUMN_OF_ARENA[space]]))

    def _note_passed(self) -> tuple[int, bool]:
        """The number of evaluations that fitted the arenas since the last call, and whether the latest did not fit."""
        before, self._passed = self._passed, self._progress[: len(self._passed)].tolist()
        counters = zip(self._passed[_FLAGS:], before[_FLAGS:], strict=True)
        # the counters on the device wrap around at 2^32
        passed = min((count - last) % 2**32 for count, last in counters)
        return passed, any(self._passed[:_FLAGS])

    def forward(self) -> Iterator[Item]:
        """Emit one evaluation that stores every field and does not integrate: MuJoCo's `mj_forward`."""
        self._begin_log([])
        yield from self._evaluate(self._evaluation("", 0, ALL_FIELDS))

    def _evaluate(self, bound: BoundEvaluation) -> Iterator[Item]:
        place, counts = self.shard.index_in_group, dict[str, list[int]]()
        for item in bound:
            if isinstance(item, BoundAwait):
                yield AwaitCounts(item.scan.call)
                for space, (table, first, number) in item.needs:
                    counts[table] = self._store.host_counts(table)[place].tolist()
                    self._store.arena(space, place).reserve(sum(counts[table][first : first + number]))
                continue
            units = item.units if item.counted is None else counts[item.counted.table][item.counted.first]
            if units:
                call = item.call.sized(units) if item.counted is None else item.call.counted(units)
                self._log.append(EmittedCall(call, units))
                yield call

    def _make_counted(self, keep: frozenset[str], n: int) -> CountedSteps:
        integrator, number = self._store.model.opt_integrator, self.evaluations
        wanted = [frozenset[str]()] * number * (n - 1) + [self._plan.wanted_of(keep, stage) for stage in range(number)]
        evaluations = [self._evaluation(integrator, at % number, own) for at, own in enumerate(wanted)]
        return CountedSteps(evaluations, number, self._store, self.shard.index_in_group)

    def _evaluation_of_chosen(self, wanted: frozenset[str], ahead: bool) -> BoundEvaluation:
        evaluation = only_for(self._plan.evaluation(self.shard.size, "", 0, wanted, ahead), wanted)
        return bind(evaluation, self.factory.choosing(*self._store.chosen_buffers()), self._island_factories)

    def _evaluation(
        self, integrator: str, rk_stage: int, wanted: frozenset[str], ahead: bool = False
    ) -> BoundEvaluation:
        key = (integrator, rk_stage, wanted, ahead)
        if key not in self._bound:
            evaluation = self._plan.evaluation(self.shard.size, *key)
            with self._store.backend.filling():
                self._bound[key] = bind(evaluation, self.factory, self._island_factories)
        return self._bound[key]
