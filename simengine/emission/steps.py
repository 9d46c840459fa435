"""Steps of many shards through one executor: counted, ahead of their counts, or whole (`simengine.emission.shard`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from scheduler import AutoExecutor, Executor, Trace, run_repeatedly
from simengine.emission.shard import ShardEmitter

Copier = Callable[[int], None]
"""Sets the controls of some group to those of a step."""


def advance(
    executor: Executor,
    emitters: Sequence[ShardEmitter],
    emission: str,
    n: int,
    keep: frozenset[str],
    controls: Sequence[Copier],
) -> Trace:
    """Run steps of shards.

    Args:
        executor: runs the calls.
        emitters: of the shards.
        emission: "counted"; "ahead" of the counts, where a shard's steps can be; or "whole".
        n: number of steps.
        keep: derived fields that must be valid afterwards.
        controls: what sets those of each step.

    Returns:
        the trace of the executor's last run, which is of all steps where nothing has to happen between them.
    """
    trace, done = None, 0
    while done < n and isinstance(executor, AutoExecutor) and executor.undecided:  # whose trials are steps
        last = done == n - 1
        trace = _advance(executor, emitters, emission, 1, keep if last else frozenset(), _from(controls, done))
        done += 1
    if trace is not None and done == n:
        return trace
    return _advance(executor, emitters, emission, n - done, keep, _from(controls, done))


def _from(controls: Sequence[Copier], first: int) -> Sequence[Copier]:
    """Controls of the steps from `first` on."""
    return [partial(_later, copy, first) for copy in controls] if first else controls


def _later(copy: Copier, first: int, step: int) -> None:
    copy(first + step)


def _advance(
    executor: Executor,
    emitters: Sequence[ShardEmitter],
    emission: str,
    n: int,
    keep: frozenset[str],
    controls: Sequence[Copier],
) -> Trace:
    """Run steps, all in the same way."""
    if emission == "whole":
        return _advance_whole(executor, emitters, n, keep, controls)
    ahead = emission == "ahead"
    early = [emitter for emitter in emitters if ahead and emitter.can_go_ahead]
    if not early and not controls:
        return executor.run([emitter.steps(n, keep) for emitter in emitters])
    late = [emitter for emitter in emitters if not (ahead and emitter.can_go_ahead)]
    kept = frozenset[str]()
    lists = [emitter.ahead(kept) for emitter in early]
    alike = 0 if late or controls else n - bool(keep)  # steps with nothing to do between them
    if alike:
        trace = run_repeatedly(executor, lists, alike)
    for step in range(alike, n):
        if step == n - 1 and keep:
            kept = keep
            lists = [emitter.ahead(kept) for emitter in early]
        for copy in controls:
            copy(step)
        trace = executor.run([*lists, *(emitter.steps(1, kept) for emitter in late)])
    return (_catch_up(executor, early, n, keep, controls) if early else None) or trace


def _advance_whole(
    executor: Executor, emitters: Sequence[ShardEmitter], n: int, keep: frozenset[str], controls: Sequence[Copier]
) -> Trace:
    """Run steps of shards, each step of each as one call."""
    steps = [frozenset[str]()] * (n - 1) + [keep]
    trace = None
    for number, kept in enumerate(steps if controls else ()):
        for copy in controls:
            copy(number)
        trace = executor.run([[emitter.whole(kept)] for emitter in emitters])
    trace = trace or executor.run([[emitter.whole(kept) for kept in steps] for emitter in emitters])
    for emitter in emitters:
        emitter.arrive_whole()
    return trace


def _catch_up(
    executor: Executor, early: Sequence[ShardEmitter], n: int, keep: frozenset[str], controls: Sequence[Copier]
) -> Trace | None:
    """Let shards that were stepped ahead of their counts take the steps for which their arenas had no room."""
    executor.synchronize()
    done = [(emitter, emitter.arrive()) for emitter in early]
    behind = [(emitter, count) for emitter, count in done if count < n * emitter.stages]
    trace = None
    for step in range(min((count // emitter.stages for emitter, count in behind), default=n), n):
        for copy in controls:
            copy(step)
        kept = keep if step == n - 1 else frozenset[str]()
        places = [(emitter, count - step * emitter.stages) for emitter, count in behind]
        trace = executor.run([e.steps(1, kept, max(0, count)) for e, count in places if count < e.stages])
    return trace
