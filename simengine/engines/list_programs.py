"""`ListPrograms`: the part of a `ListEngine` by which a program puts steps of groups among calls of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from simengine.emission.shard import ShardEmitter
from simengine.emission.store import GroupStore
from simengine.engines.list_counts import ListCounts
from simengine.engines.own_gpu import on_own_gpu
from simengine.engines.pauses import Pauses
from simengine.plan.issue import Issue, Issuing
from simengine_scheduler import Executor, Trace
from simengine_scheduler.core import Emitter, Item

_NOTHING = frozenset[str]()


class Several:
    """Emitters one after another, as one that may be used again and again.

    Args:
        emitters: may be used again and again, too.
    """

    def __init__(self, emitters: Sequence[Emitter]) -> None:
        self._emitters = emitters

    def __iter__(self) -> Iterator[Item]:
        for emitter in self._emitters:
            yield from emitter


@on_own_gpu
class ListPrograms:
    """Lists of a program that have steps of groups."""

    stores: dict[int, GroupStore]
    emitters: dict[int, list[ShardEmitter]]
    issuing: Issuing
    executor: Executor
    trace: Trace
    valid: dict[int, frozenset[str]]
    _pauses: Pauses
    _counts: ListCounts
    _was_single: bool

    def steps_of(self, group: int, n: int) -> Emitter:
        """The calls of some steps of a group, for `run_lists`. They may be yielded again and again.

        Calls by counts are asked for step by step, since what awaits counts finds out when its turn has come.
        """
        issue, lists = self.issuing.issue, list[Emitter]()
        for emitter in self.emitters[group]:
            if issue is Issue.PROGRAM:
                lists += [(emitter.whole(_NOTHING),)] * n
            elif issue is Issue.STEP_KERNEL and emitter.has_step_kernel:
                lists.append(emitter.ahead(_NOTHING, n, whole=True))
            else:
                lists += [emitter.steps(1, _NOTHING)] * n
        return lists[0] if len(lists) == 1 else Several(lists)

    def segments_of(self, group: int, names: Iterable[str]) -> tuple[int, ...]:
        """The segments of fields of a group's worlds."""
        names = tuple(names)
        return tuple(id for emitter in self.emitters[group] for id in emitter.factory.ids(names, None))

    def run_lists(self, emitters: Sequence[Emitter], executor: Executor | None) -> None:
        """Run lists that have steps of groups, and wait for them. Afterwards no derived field is valid."""
        executor = executor or self.executor
        self._pauses.wake()
        self._was_single = False
        self.trace = executor.run(emitters)
        executor.synchronize()
        self._release()
        self._counts.note(self.stores, counted=False)
        self.valid.update(dict.fromkeys(self.valid, _NOTHING))

    def _release(self) -> None:
        """Release arrays that grown arenas have replaced, after all work that used them."""
        for store in self.stores.values():
            store.retired.clear()
