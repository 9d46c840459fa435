"""Vector clocks of streams: which waits between streams are needed, given those that were made before."""

from __future__ import annotations

from collections.abc import Iterable


class Place:
    """Where a call was put: its stream, the time of its issue, what its stream was behind then, and its event."""

    __slots__ = ("event", "seen", "stream", "time")

    def __init__(self, stream: int, time: int, seen: tuple[int, ...], event: int) -> None:
        self.stream = stream
        self.time = time
        self.seen = seen
        self.event = event


class StreamClocks:
    """Calls put on streams, and what each stream is known to be behind.

    A stream is behind its own calls, behind those that it waited for, and behind all that those were behind. A wait is
    needed only for a call beyond that. Of the calls that one call must come after, those issued last are looked at
    first, so that of several on one stream only the last is waited for, and none that another wait implies.

    `places` maps the calls in flight to their places, in order of issue; drop those that have completed. `asked` counts
    the waits for calls on other streams that were asked for, `needed` those that were needed.
    """

    __slots__ = ("_seen", "_time", "asked", "needed", "places")

    def __init__(self, streams: int) -> None:
        self.places: dict[int, Place] = {}
        self.asked = 0
        self.needed = 0
        self._seen = [(-1,) * streams] * streams  # [s][t]: time of the latest call on t that stream s is behind
        self._time = 0

    def waits(self, upstream: Iterable[int], stream: int) -> list[int]:
        """Return those of some calls in flight that a stream has to be made to wait for, and note that it waits."""
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

    def put(self, seq: int, stream: int, event: int = 0) -> Place:
        """Note that a call is issued to a stream, after the waits for it were made."""
        place = self.places[seq] = Place(stream, self._time, self._seen[stream], event)
        self._time += 1
        return place

    def all_behind(self, seq: int) -> list[int]:
        """Return the calls in flight that have completed if call `seq` has, itself among them, in order of issue."""
        last = self.places[seq]
        limits = list(last.seen)
        limits[last.stream] = last.time
        return [other for other, place in self.places.items() if place.time <= limits[place.stream]]
