"""What the calls of a kernel list do, judged by the fields that they read and write and not by kernel names."""

from __future__ import annotations

from typing import NamedTuple

from simengine import Simulation
from simengine.emission.calls import EmittedCall
from simengine.model.pair_types import PAIR_TYPES


class Work(NamedTuple):
    """Numbers of worlds on which the calls of one evaluation work.

    Attributes:
        narrowphase: worlds of each call that writes contacts, by its type of geom pair.
        finished: worlds of each call that ends the evaluation by writing accelerations or integrating, sorted.
        others: worlds of all other calls except the one that counts.
    """

    narrowphase: dict[str, int]
    finished: list[int]
    others: set[int]


def written(sim: Simulation, *entries: EmittedCall) -> set[str]:
    """Fields that calls write or update."""
    return {sim.schedule.segments.buffer(s) for entry in entries for s in (*entry.call.writes, *entry.call.updates)}


def touched(sim: Simulation, *entries: EmittedCall) -> set[str]:
    """Fields that calls read, write or update."""
    return written(sim, *entries) | {sim.schedule.segments.buffer(s) for entry in entries for s in entry.call.reads}


def evaluations(sim: Simulation) -> list[list[EmittedCall]]:
    """Split the list of a simulation of one shard into evaluations, all of which begin with the same call."""
    split: list[list[EmittedCall]] = []
    for entry in sim.schedule.kernel_list:
        if entry.name == sim.schedule.kernel_list[0].name:
            split.append([])
        split[-1].append(entry)
    return split


def work(sim: Simulation, calls: list[EmittedCall]) -> Work:
    """Return the work of an evaluation, in which each kernel may occur once."""
    assert len({call.name for call in calls}) == len(calls)
    narrowphase, finished, others = dict[str, int](), list[int](), set[int]()
    for entry in calls:
        fields = written(sim, entry)
        if "contact_dist" in fields:
            assert entry.name in PAIR_TYPES
            narrowphase[entry.name] = entry.units
        elif fields & {"qacc", "qpos"}:
            finished.append(entry.units)
        elif "totals" not in fields:
            others.add(entry.units)
    return Work(narrowphase, sorted(finished), others)
