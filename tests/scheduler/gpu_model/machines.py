"""Machines and lists for tests of the GPU model. Costs are zero unless a test sets them."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from simengine_scheduler import KernelCall, Segments
from simengine_scheduler.core import Cost, Tag
from simengine_scheduler.gpu_model import GpuSpec, HostSpec, LaunchShape
from simengine_scheduler.gpu_model.recording import RecordedCall, RecordedList

US = 1e-6
_FREE = (
    "dispatch",
    "chain",
    "mark",
    "crossing",
    "spacing",
    "node",
    "visible",
    "interconnect",
    "ticket",
    "release",
    "reset",
    "admit",
)
FREE_HOST = HostSpec(**{f.name: 0.0 for f in fields(HostSpec) if f.name != "listed"})


def machine(multiprocessors: int = 4, host: HostSpec = FREE_HOST, **given: Any) -> GpuSpec:
    """A GPU of four multiprocessors, each with a capacity of four blocks of 256 threads. Other costs are zero."""
    limits = {"threads": 1024, "blocks": 8, "registers": 65536, "shared": 65536}
    costs = dict.fromkeys((*_FREE, "slot"), 0.0)
    return GpuSpec("test", multiprocessors=multiprocessors, host=host, **{**limits, **costs, **given})


def with_host(spec: GpuSpec, **costs: float) -> GpuSpec:
    """The same GPU with the given costs on the host."""
    return replace(spec, host=replace(spec.host, **costs))


def shaped(blocks: int = 1, threads: int = 256) -> LaunchShape:
    """A launch shape with few registers and no shared memory."""
    return LaunchShape(blocks, threads, 16, 0)


class Lists:
    """Builds recorded lists: `add` calls with the segments that they touch, then `build` the list."""

    def __init__(self) -> None:
        self.table = Segments()
        self.calls: list[RecordedCall] = []
        self.items: list[int] = []

    def add(self, reads: str = "", writes: str = "", us: float = 1.0, shape: LaunchShape | None = None) -> int:
        """A call over segments named by letters; returns its number."""
        number = len(self.calls)
        touched = (tuple(self.table.intern(c) for c in part) for part in (reads, writes))
        shape = shape or shaped()
        self.calls.append(RecordedCall(f"k{number}", *touched, (), shape, us * US, Cost(), Tag()))
        self.items.append(number)
        return number

    def wait(self, number: int) -> None:
        """The emitter awaits a call."""
        self.items.append(~number)

    def build(self, fixed: bool = False) -> RecordedList:
        """The list, of one emitter."""
        return RecordedList(tuple(self.calls), (tuple(self.items),), (fixed,), self.table)


def names(calls: list[KernelCall]) -> list[str]:
    """Names of calls."""
    return [call.name for call in calls]
