"""Vector clocks of streams: which waits between streams are needed, and which are implied by earlier ones."""

from __future__ import annotations

from collections.abc import Iterable


class StreamTime:
    """Where a call was issued: stream, time of issue, what the stream was behind at that time, and event."""

    __slots__ = ("event", "seen", "stream", "time")

    def __init__(self, stream: int, time: int, seen: tuple[int, ...], event: int) -> None:
        self.stream = stream
        self.time = time
        self.seen = seen
        self.event = event


class StreamClocks:
    """Calls put on streams, and what each stream is known to be behind.

    A stream is *behind* a call if what is issued to the stream next comes after the call. It is behind its own calls,
    behind those that it waited for, and behind all that those were behind. A wait is needed only for other calls. The
    upstream calls of a call are looked at from the latest issued to the first. Of several on one stream only the last
    is therefore waited for, and none that another wait implies.

    Attributes:
        places: the calls in flight, in order of issue. Callers remove calls that have completed.
        asked: how many waits for calls on other streams hazards asked for.
        needed: how many of them were needed.
    """

    __slots__ = ("_seen", "_time", "asked", "needed", "places")

    def __init__(self, streams: int) -> None:
        self.places: dict[int, StreamTime] = {}
        self.asked = 0
        self.needed = 0
        self._seen = [(-1,) * streams] * streams  # [s][t]: time of the latest call on t that stream s is behind
        self._time = 0

    def waits(self, upstream: Iterable[int], stream: int) -> list[int]:
        """Return those of some upstream calls that a stream must be made to wait for, and note that it waits."""
        places, seen = self.places, self._seen[stream]
        late: list[tuple[int, int]] = []
        for seq in upstream:
            place = places[seq]
            other = place.stream
            if other != stream:
                self.asked += 1
                if place.time > seen[other]:
                    late.append((place.time, seq))
        if not late:
            return []
        late.sort(reverse=True)
        found = []
        for time, seq in late:
            place = places[seq]
            if time > seen[place.stream]:
                merged = list(map(max, seen, place.seen))
                merged[place.stream] = time
                seen = tuple(merged)
                found.append(seq)
        self._seen[stream] = seen
        self.needed += len(found)
        return found

    def put(self, seq: int, stream: int, event: int = 0) -> StreamTime:
        """Note that a call is issued to a stream, once the stream has been made to wait for what the call needs."""
        place = self.places[seq] = StreamTime(stream, self._time, self._seen[stream], event)
        self._time += 1
        return place

    def all_behind(self, seq: int) -> list[int]:
        """Return call `seq` and the calls in flight that have completed if it has, in order of issue."""
        last = self.places[seq]
        limits = list(last.seen)
        limits[last.stream] = last.time
        return [other for other, place in self.places.items() if place.time <= limits[place.stream]]
