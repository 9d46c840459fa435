"""Arenas that move while steps are under way, when calls of other stages may still wait in an executor's window."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest

from simengine import Simulation, load_model
from simengine_scheduler import AwaitCounts, KernelCall
from simengine_scheduler.core import Item
from simengine_scheduler.core.dependencies import dependencies
from simengine_scheduler.launch.arguments import Buffer
from tests.emission.worlds import ant, ant_start, host, snapshot
from tests.models import OWN

WORLDS, STEPS = 40, 4
WINDOWS: list[dict[str, Any]] = [
    {"executor": "threads", "workers": 2},
    {"executor": "threads", "workers": 2, "window": 3},
    *({"executor": "shuffled", "seed": seed} for seed in range(3)),
    {"executor": "simulated", "model": "streams"},
    {"executor": "simulated", "model": "streams", "completion": "polling"},
    {"executor": "simulated", "model": "streams", "gpu": "h100"},
    {"executor": "simulated", "model": "streams", "gpu": "h100", "completion": "polling"},
    {"executor": "simulated", "model": "streams", "gpu": "h100", "completion": "polling", "chains": True},
    {"executor": "simulated", "model": "acs-sw"},
    {"executor": "simulated", "model": "acs-hw"},
]


def dropped(executor: str, emission: str, **options: Any) -> Simulation:
    """Ants on the floor in two shards, whose arenas have room for fewer contacts."""
    sim = host(ant(), WORLDS, shards=2, executor=executor, emission=emission, executor_options=options)
    start = ant_start(3 * WORLDS)
    grounded = np.arange(3 * WORLDS) % 3 != 0
    sim.set_state(qpos=start.qpos[grounded][:WORLDS], qvel=start.qvel[grounded][:WORLDS])
    return sim


def stepped(executor: str, emission: str, **options: Any) -> dict[str, bytes]:
    """The bits after steps in which arenas have moved."""
    with dropped(executor, emission, **options) as sim:
        before = sim.nbytes()
        sim.step(STEPS)
        sim.synchronize()
        assert sim.nbytes() > before, "no arena has grown"
        return snapshot(sim)


@cache
def expected(emission: str) -> dict[str, bytes]:
    return stepped("serial", emission)


@pytest.mark.parametrize("options", WINDOWS, ids=lambda options: "-".join(map(str, options.values())))
@pytest.mark.parametrize("emission", ["counted", "stages"])
def test_no_window_lets_a_call_see_an_arena_of_after_its_time(options: dict[str, Any], emission: str) -> None:
    assert stepped(emission=emission, **options) == expected(emission)


def items_of(sim: Simulation, steps: int) -> Iterator[Item]:
    """Items of one step after another, whose calls are run as they come."""
    for _ in range(steps):
        for emitter in sim.schedule.emitters():
            for item in emitter:
                if isinstance(item, KernelCall):
                    item.launch.issue(0)
                yield item


def arguments(call: KernelCall) -> set[str]:
    """Names of the buffers that the arguments of a call are in."""
    launch: Any = call.launch
    given = (argument[0] if isinstance(argument, tuple) else argument for argument in launch._packed.args)
    return {argument.name for argument in given if isinstance(argument, Buffer)}


@pytest.mark.parametrize(("model", "emission"), [("ant", "counted"), ("ant", "stages"), ("pile", "counted")])
def test_whoever_uses_an_arena_has_ended_when_it_may_move(model: str, emission: str) -> None:
    """An arena moves behind a wait. So the awaited call must come after all earlier calls that take the arena."""
    source = ant() if model == "ant" else load_model(OWN["pile"])
    with host(source, 8, executor="serial", emission=emission) as sim:
        sim.step()
        engine: Any = sim._engine
        (store,) = engine.stores.values()
        spaces = [store.contacts, store.rows, store.jacobians, *store.islands.values(), *store.pairs.values()]
        moves = {buffer.name for arenas in spaces for arena in arenas for buffer in arena.buffers.values()}
        items = list(items_of(sim, 3))
        conflicts = sim.schedule.segments.conflicts
    calls = [item for item in items if isinstance(item, KernelCall)]
    behind: list[set[int]] = []
    for before in dependencies(calls, conflicts):
        behind.append(set(before).union(*(behind[other] for other in before)))
    issued, awaits, users = 0, 0, 0
    for item in items:
        if isinstance(item, AwaitCounts):
            awaited = max(n for n in range(issued) if calls[n] is item.call)
            using = {n for n in range(issued) if arguments(calls[n]) & moves}
            assert using <= behind[awaited] | {awaited}, [calls[n].name for n in using - behind[awaited]]
            awaits, users = awaits + 1, len(using)
        issued += isinstance(item, KernelCall)
    assert awaits >= 3
    assert users
