"""Contacts of worlds whose pairs of geoms are found anew in every step, with a count of their own.

    broadphase ── scan_pairs ── counts ── find_pairs ── collide ── count_pairs ── scan ── counts ── place_contacts

How many pairs there are is known before any is written, and how many contacts before they get their places.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from scheduler import AwaitCounts
from scheduler.calls import Item
from simengine.emission.calls import CallFactory, EmittedCall, SizedCall
from simengine.emission.store import GroupStore
from simengine.kernels.pairs import PAIR_KERNELS
from simengine.state.fields import PAIR_COLUMNS

_SLICES = PAIR_COLUMNS.index("slices")


@dataclass(frozen=True)
class FoundPairs:
    """The prebuilt calls of one shard, in their order."""

    broadphase: SizedCall
    scan: SizedCall
    find: SizedCall
    collide: SizedCall
    count: SizedCall
    place: SizedCall

    @staticmethod
    def build(factory: CallFactory, stored: frozenset[str]) -> FoundPairs:
        """The calls over the factory's worlds."""
        return FoundPairs(*(factory.make(kernel, stored) for kernel in PAIR_KERNELS))

    def count_pairs(self, worlds: int, log: list[EmittedCall]) -> Iterator[Item]:
        """Emit the broadphase of the worlds of a shard and the count of what it finds."""
        for call, units in ((self.broadphase, worlds), (self.scan, len(PAIR_COLUMNS))):
            log.append(EmittedCall(call.sized(units) if call is self.broadphase else call.call, units))
            yield log[-1].call

    def find_contacts(self, worlds: int, store: GroupStore, place: int, log: list[EmittedCall]) -> Iterator[Item]:
        """Emit the pairs of shard `place`, their contacts and the count of these."""
        yield AwaitCounts(self.scan.call)
        needs = store.pair_totals_host[place].tolist()
        for arenas, need in zip(store.pairs.values(), needs, strict=True):
            arenas[place].reserve(need)
        for call, units in ((self.find, worlds), (self.collide, needs[_SLICES]), (self.count, worlds)):
            if units:
                log.append(EmittedCall(call.sized(units), units))
                yield log[-1].call

    def place_contacts(self, store: GroupStore, place: int, log: list[EmittedCall]) -> Iterator[Item]:
        """Emit what puts the contacts of shard `place` in their places, whose arena is made."""
        slices = int(store.pair_totals_host[place][_SLICES])
        if slices:
            log.append(EmittedCall(self.place.sized(slices), slices))
            yield log[-1].call
