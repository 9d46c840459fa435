"""Runs steps of many shards through one executor: counted, ahead of counts, or whole (`simengine.emission.shard`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from simengine.emission.shard import ShardEmitter
from simengine.plan.issue import Issue
from simengine_scheduler import Executor, Trace
from simengine_scheduler.executors import AutoExecutor, run_repeatedly

_TRIED = 8  # steps of a trial of executors, where one call makes several
_MOST_CALLS = 2048  # calls issued together; a larger CUDA graph takes long to build


@dataclass(frozen=True)
class Controls:
    """Controls of a group that differ from step to step.

    Attributes:
        group: number of the group.
        copy: `copy(step, rounds)` copies the controls of `rounds` steps, from `step` on, to where calls that are issued
            together read them.
        set: `set(step)` sets the group's `ctrl` to the controls of `step`.
        rows: the controls of all steps as a contiguous array, (n, num_worlds, nu), where calls on a CPU copy them; None
            elsewhere.
        first: index, among the steps that have controls, of the one that `use` and `ahead` call step 0.
    """

    group: int
    copy: Callable[[int, int], None]
    set: Callable[[int], None]
    rows: np.ndarray | None = None
    first: int = 0

    def use(self, step: int) -> None:
        """Set the group's `ctrl` to the controls of a step."""
        self.set(self.first + step)

    def ahead(self, step: int, rounds: int) -> None:
        """Copy the controls of `rounds` steps, from `step` on, to where calls that are issued together read them."""
        self.copy(self.first + step, rounds)


class SingleStep:
    """A whole step of shards by kernels of whole steps. It has the same lists each time, so nothing is asked twice.

    Args:
        emitters: one for each shard.

    Attributes:
        emitters: as given.
        possible: whether all shards have such a kernel.
    """

    def __init__(self, emitters: Sequence[ShardEmitter]):
        self.emitters = emitters
        self.possible = bool(emitters) and all(emitter.has_step_kernel for emitter in emitters)
        self._lists = [emitter.step_ahead(True) for emitter in emitters] if self.possible else []

    def run(self, executor: Executor, share: float) -> Trace:
        """Make the step, and wait for it. Logs of the emitters stay as they are.

        Args:
            executor: runs the calls.
            share: the share of the shards that do not sleep.
        """
        if isinstance(executor, AutoExecutor):
            trace = executor.run(self._lists, share)
        else:
            trace = run_repeatedly(executor, self._lists, 1)
        executor.synchronize()
        return trace

    def begin_logs(self) -> None:
        """Let the emitters' logs have the calls of the step."""
        for emitter in self.emitters:
            emitter.step_ahead(True)


def advance(
    executor: Executor,
    emitters: Sequence[ShardEmitter],
    issue: Issue,
    n: int,
    keep: frozenset[str],
    controls: Sequence[Controls],
    each: bool = False,
) -> Trace:
    """Run steps of shards.

    Args:
        executor: runs the calls.
        emitters: one for each shard.
        issue: how calls are issued. Shards that cannot go ahead of counts wait for their counts.
        n: number of steps, at least one.
        keep: derived fields that must be valid afterwards.
        controls: of the groups whose controls differ from step to step.
        each: whether every step of a shard is a call of its own, also where one call could make several.

    Returns:
        The trace of the executor's last run. One run makes all steps if nothing has to happen between them, or as many
        as the executor asks for.
    """
    trace, done = None, 0
    while done < n and isinstance(executor, AutoExecutor) and executor.undecided:
        part = min(_TRIED, n - done) if issue is Issue.PROGRAM and not each else 1
        kept = keep if done + part == n else frozenset[str]()
        trace = _advance(executor, emitters, issue, part, kept, _from(controls, done), each)
        done += part
    if trace is not None and done == n:
        return trace
    return _advance(executor, emitters, issue, n - done, keep, _from(controls, done), each)


def _from(controls: Sequence[Controls], first: int) -> Sequence[Controls]:
    """The same controls, with step `first` as step 0."""
    return [replace(own, first=own.first + first) for own in controls]


def _advance(
    executor: Executor,
    emitters: Sequence[ShardEmitter],
    issue: Issue,
    n: int,
    keep: frozenset[str],
    controls: Sequence[Controls],
    each: bool,
) -> Trace:
    """Run steps that are all issued in the same way."""
    if issue is Issue.PROGRAM:
        advance_whole = _advance_whole if each or n == 1 else _advance_several
        return advance_whole(executor, emitters, n, keep, controls)
    whole, ahead = issue is Issue.STEP_KERNEL, issue.is_ahead
    early = [emitter for emitter in emitters if emitter.can_go_ahead] if ahead else []
    if not early and not controls:
        return _advance_by_counts(executor, emitters, n, keep)
    together = _together(executor, early, whole) if n > 1 and len(early) == len(emitters) else 1
    if together > 1:
        trace = _advance_together(executor, early, n, keep, controls, together, whole)
        return _catch_up(executor, early, n, keep, controls, whole) or trace
    late = (
        [emitter for emitter in emitters if not (ahead and emitter.can_go_ahead)] if len(early) < len(emitters) else []
    )
    kept = frozenset[str]()
    lists = [emitter.step_ahead(whole) for emitter in early]
    alike = 0 if late or controls else n - bool(keep)  # steps that repeat the same lists, with no work between them
    if alike:
        trace = run_repeatedly(executor, lists, alike)
    for step in range(alike, n):
        if step == n - 1 and keep:
            kept = keep
            lists = [emitter.ahead(kept, whole=whole) for emitter in early]
        for own in controls:
            own.use(step)
        trace = executor.run([*lists, *(emitter.steps(1, kept) for emitter in late)])
    return (_catch_up(executor, early, n, keep, controls, whole) if early else None) or trace


def _advance_by_counts(executor: Executor, emitters: Sequence[ShardEmitter], n: int, keep: frozenset[str]) -> Trace:
    """Run steps that wait for counts. Shards do not wait for one another within a run."""
    most, trace = getattr(executor, "rounds", 1), None
    most = most if most > 1 else n
    for done in range(0, n, most):
        part = min(most, n - done)
        kept = keep if done + part == n else frozenset[str]()
        trace = executor.run([emitter.steps(part, kept) for emitter in emitters])
    assert trace is not None, "there is at least one step"
    return trace


def _together(executor: Executor, emitters: Sequence[ShardEmitter], whole: bool) -> int:
    """How many steps to issue together: as many as the executor asks for, within a limit on calls."""
    rounds: int = getattr(executor, "rounds", 1)
    calls = sum(len(emitter.ahead(frozenset(), whole=whole)) for emitter in emitters) if rounds > 1 else 0
    return max(1, min(rounds, _MOST_CALLS // max(1, calls)))


def _parts(n: int, most: int) -> Iterator[int]:
    """Split n steps into parts of `most` steps, and what is left.

    Programs repeat an action for two to five steps, which are thus one part. There are at most `most` different parts,
    for each of which the executor builds a graph.
    """
    yield from [most] * (n // most)
    if n % most:
        yield n % most


def _advance_together(
    executor: Executor,
    emitters: Sequence[ShardEmitter],
    n: int,
    keep: frozenset[str],
    controls: Sequence[Controls],
    most: int,
    whole: bool,
) -> Trace:
    """Run steps ahead of counts, up to `most` as one list. Shards do not wait for one another within a list."""
    controlled, done, trace = {own.group for own in controls}, 0, None
    for part in _parts(n, most):
        kept = keep if done + part == n else frozenset[str]()
        lists = [emitter.ahead(kept, part, emitter.shard.group in controlled, whole) for emitter in emitters]
        for own in controls:
            own.ahead(done, part)
        trace = executor.run(lists)
        done += part
    for own in controls:
        own.use(n - 1)
    assert trace is not None, "there is at least one step"
    return trace


def _advance_whole(
    executor: Executor, emitters: Sequence[ShardEmitter], n: int, keep: frozenset[str], controls: Sequence[Controls]
) -> Trace:
    """Run whole steps: each step of each shard is one call."""
    steps = [frozenset[str]()] * (n - 1) + [keep]
    trace = None
    for number, kept in enumerate(steps if controls else ()):
        for own in controls:
            own.use(number)
        trace = executor.run([[emitter.whole(kept)] for emitter in emitters])
    return trace or executor.run([[emitter.whole(kept) for kept in steps] for emitter in emitters])


def _advance_several(
    executor: Executor, emitters: Sequence[ShardEmitter], n: int, keep: frozenset[str], controls: Sequence[Controls]
) -> Trace:
    """Run whole steps: all steps of a shard are one call, or two if the last one keeps fields."""
    rows = {own.group: own.rows[own.first :] for own in controls if own.rows is not None}
    parts = [(n - 1, frozenset[str](), 0), (1, keep, n - 1)] if keep else [(n, keep, 0)]
    lists = [
        [emitter.several_whole(kept, number, _after(rows, emitter, first)) for number, kept, first in parts]
        for emitter in emitters
    ]
    return executor.run(lists, n) if isinstance(executor, AutoExecutor) else executor.run(lists)


def _after(rows: Mapping[int, np.ndarray], emitter: ShardEmitter, first: int) -> np.ndarray | None:
    """The controls of a shard's group from a step on, or None if it has none that differ from step to step."""
    own = rows.get(emitter.shard.group)
    return None if own is None else own[first:]


def _catch_up(
    executor: Executor,
    early: Sequence[ShardEmitter],
    n: int,
    keep: frozenset[str],
    controls: Sequence[Controls],
    whole: bool,
) -> Trace | None:
    """Issue by counts the steps that shards could not make ahead of counts, since their arenas were too small.

    Returns:
        The trace of the last run, or None if no shard is behind.
    """
    executor.synchronize()
    if whole and not keep:
        early = [emitter for emitter in early if not emitter.has_step_kernel]
    behind = [
        (emitter, count) for emitter in early if (count := emitter.arrive(n, keep, whole)) < n * emitter.evaluations
    ]
    trace = None
    for step in range(min((count // emitter.evaluations for emitter, count in behind), default=n), n):
        for own in controls:
            own.use(step)
        kept = keep if step == n - 1 else frozenset[str]()
        places = [(emitter, count - step * emitter.evaluations) for emitter, count in behind]
        trace = executor.run([e.steps(1, kept, max(0, count)) for e, count in places if count < e.evaluations])
    return trace
