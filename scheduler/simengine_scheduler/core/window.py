"""The window: a bounded set of calls in program order, each pending, ready or executing.

    insert ->  pending  --last upstream call completes-->  ready  --start-->  executing  --complete-->  gone

Pure logic: no GPU, no threads, no clock. The caller locks if several threads share a window.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from .calls import KernelCall
from .hazards import HazardTracker
from .segments import Segments

State = Literal["pending", "ready", "executing"]


class Window:
    """At most `capacity` calls, each with the set of earlier calls in the window that it must wait for.

    `insert` numbers calls 0, 1, 2, ... in program order, and all methods name a call by its number.

    Attributes:
        capacity: how many calls the window holds at most.
        calls: the calls in the window by number, oldest first.
        ready: numbers of the calls that may start, in the order in which they became ready.
        following: the number that the next call gets.
    """

    __slots__ = (
        "_add_hazards",
        "_downstream",
        "_executing",
        "_hazards",
        "_remove_hazards",
        "_upstream",
        "calls",
        "capacity",
        "following",
        "ready",
    )

    def __init__(self, segments: Segments, capacity: int = 32) -> None:
        if capacity < 1:
            raise ValueError(f"a window of {capacity} calls cannot hold one; give a capacity of at least 1")
        self.capacity = capacity
        self.ready: list[int] = []
        self.calls: dict[int, KernelCall] = {}
        self._hazards = HazardTracker(segments.conflicts)
        self._add_hazards = self._hazards.add
        self._remove_hazards = self._hazards.remove
        self._upstream: dict[int, set[int]] = {}  # pending calls only
        self._downstream: dict[int, list[int]] = {}
        self._executing: set[int] = set()
        self.following = 0

    def __len__(self) -> int:
        return len(self.calls)

    @property
    def full(self) -> bool:
        """Whether a call must complete before the next can be inserted."""
        return len(self.calls) >= self.capacity

    def insert(self, call: KernelCall) -> int:
        """Take in the next call of program order and return its number. Raises RuntimeError if the window is full."""
        calls = self.calls
        if len(calls) >= self.capacity:
            raise RuntimeError(
                f"the window holds {len(calls)} calls, its capacity; complete one before inserting {call.name!r}"
            )
        seq = self.following
        upstream = self._add_hazards(seq, call)
        self.following = seq + 1
        calls[seq] = call
        downstream = self._downstream
        downstream[seq] = []
        if upstream:
            self._upstream[seq] = upstream
            for earlier in upstream:
                downstream[earlier].append(seq)
        else:
            self.ready.append(seq)
        return seq

    def start(self, seq: int) -> KernelCall:
        """Mark a ready call as executing and return it. Raises ValueError if it is not ready."""
        try:
            self.ready.remove(seq)
        except ValueError:
            raise ValueError(f"call {seq} is not ready in the window; start only calls listed in `ready`") from None
        self._executing.add(seq)
        return self.calls[seq]

    def complete(self, seq: int) -> None:
        """Remove an executing call. Calls that waited for it alone become ready."""
        try:
            self._executing.remove(seq)
        except KeyError:
            raise ValueError(
                f"call {seq} is not executing in the window; complete only calls that were started"
            ) from None
        del self.calls[seq]
        self._remove_hazards(seq)
        pending = self._upstream
        for later in self._downstream.pop(seq):
            upstream = pending[later]
            upstream.remove(seq)
            if not upstream:
                del pending[later]
                self.ready.append(later)

    def clear(self) -> None:
        """Remove all calls, after a run that failed. Numbers go on from `following`."""
        self.ready.clear()
        self.calls.clear()
        self._upstream.clear()
        self._downstream.clear()
        self._executing.clear()
        self._hazards.clear()

    def state(self, seq: int) -> State:
        """Return the state of a call in the window. Raises KeyError if it is not there."""
        if seq not in self.calls:
            raise KeyError(f"call {seq} is not in the window")
        if seq in self._upstream:
            return "pending"
        return "executing" if seq in self._executing else "ready"

    def upstream(self, seq: int) -> frozenset[int]:
        """Return the calls that call `seq` waits for. Calls that these wait for may be left out."""
        return frozenset(self._upstream.get(seq, ()))

    def executing(self) -> Sequence[int]:
        """Return the executing calls, oldest first."""
        return sorted(self._executing)
