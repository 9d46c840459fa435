"""Kernel calls: what an emitter yields and an executor runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol


class Launch(Protocol):
    """How a call is started on its processor, a GPU or the host."""

    def issue(self, stream: int) -> None:
        """Start the kernel.

        Args:
            stream: a CUDA stream handle. On the host it is 0, and the call runs to its end.
        """
        ...


class Cost(NamedTuple):
    """A hint of what a call takes: floating point operations, bytes moved, shared memory of a block [bytes]."""

    flops: float = 0.0
    bytes: float = 0.0
    shared: int = 0


class Tag(NamedTuple):
    """Where a call comes from: model groups, shard, stage. Executors carry it to traces and never interpret it."""

    groups: tuple[int, ...] = ()
    shard: int = 0
    stage: str = ""


_NO_COST = Cost()
_NO_TAG = Tag()


class _Unplanned:
    """The value of `KernelCall._plan` until a hazard tracker (hazards.py) has worked out the plan of the call."""

    stamp = None


_UNPLANNED = _Unplanned()


class _Open:
    """A call that is being made. It has the layout of a `KernelCall`, and its attributes can be set."""

    __slots__ = ("_plan", "cost", "launch", "name", "reads", "tag", "tiled", "updates", "writes")


_set = object.__setattr__


@dataclass(frozen=True, slots=True, eq=False, init=False)
class KernelCall:
    """One kernel launch with the segments that it touches. Build it once, and yield the same object every time.

    A call is equal only to itself.

    Attributes:
        name: shown in traces and errors.
        launch: starts the kernel.
        reads, writes: ids of a `Segments` table.
        updates: ids of segments that the kernel reads and writes through one pointer.
        cost: a hint for policies and planners.
        tag: where the call comes from.
        tiled: those of the segments above of which each tile of the call touches only a part of its own (see `Tiling`).
            Executor `device` then lets calls wait for each other tile by tile.
    """

    name: str
    launch: Launch
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    updates: tuple[int, ...] = ()
    cost: Cost = _NO_COST
    tag: Tag = _NO_TAG
    tiled: tuple[int, ...] = ()
    _plan: Any = field(default=_UNPLANNED, init=False, repr=False)

    def __init__(
        self,
        name: str,
        launch: Launch,
        reads: tuple[int, ...],
        writes: tuple[int, ...],
        updates: tuple[int, ...] = (),
        cost: Cost = _NO_COST,
        tag: Tag = _NO_TAG,
        tiled: tuple[int, ...] = (),
    ) -> None:
        # What a frozen dataclass does by itself takes three times as long, and emitters make thousands of calls.
        call: Any = self
        _set(call, "__class__", _Open)
        call.name, call.launch = name, launch
        call.reads, call.writes, call.updates = reads, writes, updates
        call.cost, call.tag, call.tiled = cost, tag, tiled
        call._plan = _UNPLANNED
        call.__class__ = KernelCall


@dataclass(frozen=True, slots=True, eq=False)
class AwaitCounts:
    """Yielded by an emitter that needs numbers which `call` computes.

    The emitter resumes when the call, as it was yielded last, has completed. The emitter may then read what the call
    wrote to memory that the host can see. Other emitters go on meanwhile.
    """

    call: KernelCall


class Idle:
    """Yielded as `IDLE` by an emitter that has no call yet but may have one soon. The executor asks it again."""

    __slots__ = ()


IDLE = Idle()


class FixedList(tuple[KernelCall, ...]):
    """A list of calls that is run again and again.

    A list is equal only to itself. Executors find what they have prepared for it, such as a CUDA graph, by identity.
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return self is other

    def __ne__(self, other: object) -> bool:
        return self is not other

    def __hash__(self) -> int:
        return id(self)


Item = KernelCall | AwaitCounts | Idle
Emitter = Iterable[Item]

_FIXED = frozenset({FixedList})


def are_fixed(emitters: Iterable[Emitter]) -> bool:
    """Return whether all emitters are fixed lists."""
    return set(map(type, emitters)) <= _FIXED
