"""Policies: which ready call goes first, and which stream a call joins. Only time depends on them, never a result.

An order policy is `choose(ready, calls) -> seq`: `ready` lists sequence numbers, `calls` maps them to their calls.
A stream policy is `choose(upstream, state) -> stream index`: `upstream` holds the calls in flight to be waited for.
To add one, write the function and enter it in the table that follows it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field

from .calls import KernelCall

OrderPolicy = Callable[[Sequence[int], Mapping[int, KernelCall]], int]


def fifo(ready: Sequence[int], calls: Mapping[int, KernelCall]) -> int:
    """Return the oldest call in program order."""
    return min(ready)


def lifo(ready: Sequence[int], calls: Mapping[int, KernelCall]) -> int:
    """Return the newest call in program order. This follows one shard in depth, while its data is in cache."""
    return max(ready)


def critical(ready: Sequence[int], calls: Mapping[int, KernelCall]) -> int:
    """Return the call with the largest cost hint, of flops or bytes, so that no long call runs alone at the end."""
    return max(ready, key=lambda seq: (max(calls[seq].cost.flops, calls[seq].cost.bytes), -seq))


ORDER_POLICIES: dict[str, OrderPolicy] = {"fifo": fifo, "lifo": lifo, "critical": critical}
"""Order policies by name: given the ready calls and all calls in the window, the one to issue next."""


@dataclass(slots=True)
class StreamState:
    """What stream policies may look at. The executor updates it.

    Attributes:
        load: of each stream, the calls that are not known to be complete.
        tail: of each stream, the call issued last, or -1.
        stream_of: the stream of each call in flight.
        issued: how many calls have been issued.
    """

    load: list[int]
    tail: list[int]
    stream_of: dict[int, int] = field(default_factory=dict)
    issued: int = 0

    @classmethod
    def of(cls, streams: int) -> StreamState:
        """Return the state of a number of empty streams."""
        return cls([0] * streams, [-1] * streams)

    def put(self, seq: int, stream: int) -> None:
        """Note that a call is issued to a stream."""
        self.stream_of[seq] = stream
        self.tail[stream] = seq
        self.load[stream] += 1
        self.issued += 1


StreamPolicy = Callable[[Set[int], StreamState], int]


def round_robin(upstream: Set[int], state: StreamState) -> int:
    """Take each stream in turn."""
    return state.issued % len(state.load)


def least_loaded(upstream: Set[int], state: StreamState) -> int:
    """Return the stream with the fewest calls in flight, the first of equals."""
    load = state.load
    return load.index(min(load))


def follow(upstream: Set[int], state: StreamState) -> int:
    """Return the stream of the newest predecessor that is the last call of its stream, so that no wait is needed.

    If there is none, return the stream of the newest predecessor, which needs no wait either, if no stream is less
    loaded by more than one call. So many lists that take turns stay on their streams. Otherwise return the least loaded
    stream, so that two successors of one call run side by side.
    """
    newest = last = -1
    for seq in upstream:
        if seq > last and state.tail[state.stream_of[seq]] == seq:
            last = seq
        if seq > newest:
            newest = seq
    if last >= 0:
        return state.stream_of[last]
    load = state.load
    if newest >= 0 and load[stream := state.stream_of[newest]] <= min(load) + 1:
        return stream
    return load.index(min(load))


STREAM_POLICIES: dict[str, StreamPolicy] = {"follow": follow, "least_loaded": least_loaded, "round_robin": round_robin}
"""Stream policies by name: given the calls to wait for and the state of the streams, the stream of a call."""
