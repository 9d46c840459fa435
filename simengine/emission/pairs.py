"""Contacts of worlds whose pairs of geoms are found anew in every step, with a count of their own.

    broadphase ── scan_pairs ── counts ── find_pairs ── collide ── count_pairs ── scan ── counts ── place_contacts

How many pairs there are is known before any is written, and how many contacts before they get their places.
"""

from __future__ import annotations

from typing import NamedTuple

from simengine.emission.bound import Count, Plan, Room, Work
from simengine.emission.calls import CallFactory
from simengine.plan.pairs import PAIR_KERNELS
from simengine.state.fields import PAIR_ARENAS, PAIR_COLUMNS

_TABLE = "pair_totals_host"


class FoundPairs(NamedTuple):
    """Parts of a shard's plan: the pairs are counted, then found and collided, then their contacts are placed."""

    search: Plan
    find: Plan
    place: Plan


def found_pairs(factory: CallFactory, stored: frozenset[str]) -> FoundPairs:
    """The plan over the factory's worlds."""
    worlds = factory.shard.size
    broadphase, scan, find, collide, count, place = (factory.make(kernel, stored) for kernel in PAIR_KERNELS)
    slices = Count(_TABLE, PAIR_COLUMNS.index("slices"))
    needs = tuple((space, Count(_TABLE, column)) for column, space in enumerate(PAIR_ARENAS))
    return FoundPairs(
        (Work(broadphase, worlds), Work(scan, len(PAIR_COLUMNS))),
        (Room(scan, needs), Work(find, worlds), Work(collide, worlds, slices), Work(count, worlds)),
        (Work(place, worlds, slices),),
    )
