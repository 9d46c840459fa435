"""Kernel calls: what an emitter yields and an executor runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol


class Launch(Protocol):
    """How a call reaches its processor."""

    def issue(self, stream: int) -> None:
        """Start the kernel on a CUDA stream handle and return, or, on the host (stream 0), run it to its end."""
        ...


class Cost(NamedTuple):
    """What a call is expected to take: floating point operations, bytes moved, shared memory a block [bytes]."""

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


@dataclass(frozen=True, slots=True, eq=False)
class KernelCall:
    """One kernel launch with the segments it touches. Prebuild it, and yield the same object as often as it is due.

    `reads`, `writes` and `updates` are ids of a `Segments` table; an update is a read and a write through one pointer.
    Of those that are also `tiled`, each tile of the call touches its own part only (see `Tiling`), so that
    executor `device` lets calls wait for one another tile by tile. A call is equal only to itself.
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


@dataclass(frozen=True, slots=True, eq=False)
class AwaitCounts:
    """Yielded by an emitter that needs numbers: it resumes when its latest yielded `call` has completed.

    What the call wrote to host-visible memory may then be read. Other emitters go on meanwhile.
    """

    call: KernelCall


class Idle:
    """Yielded, as `IDLE`, by an emitter that has no call at present but may have one soon; it is asked again."""

    __slots__ = ()


IDLE = Idle()


class FixedList(tuple[KernelCall, ...]):
    """Calls that are run again and again in this order; equal only to itself, so that what was made of it is found."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return self is other

    def __ne__(self, other: object) -> bool:
        return self is not other

    def __hash__(self) -> int:
        return id(self)


Item = KernelCall | AwaitCounts | Idle
Emitter = Iterator[Item] | Sequence[Item]
