"""Steps of many shards through one executor, counted or ahead of their counts; see `simengine.emission.shard`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from scheduler import Executor, Trace, run_repeatedly
from simengine.emission.shard import ShardEmitter

Copier = Callable[[int], None]
"""Sets the controls of some group to those of a step."""


def advance(
    executor: Executor,
    emitters: Sequence[ShardEmitter],
    ahead: bool,
    n: int,
    keep: frozenset[str],
    controls: Sequence[Copier],
) -> Trace:
    """Run steps of shards.

    Args:
        executor: runs the calls.
        emitters: of the shards.
        ahead: whether steps are issued ahead of their counts, where a shard's can be.
        n: number of steps.
        keep: derived fields that must be valid afterwards.
        controls: what sets those of each step.

    Returns:
        the trace of the executor's last run, which is of all steps where nothing has to happen between them.
    """
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
