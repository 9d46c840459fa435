"""Mixed batches on the GPU: groups are added, removed and paused, and each has the bits of its model stepped alone."""

from __future__ import annotations

import time
from typing import Any

import mujoco
import numpy as np
import pytest

from simengine import Simulation
from simengine.emission import store
from simengine.zoo import random_robot
from simengine_scheduler import validate
from tests.gpu.compare import to_host
from tests.models import OWN, gymnasium_path
from tests.scheduler.patience import best

EXECUTORS = ("serial", "streams", "graph", "graph-cached", "pipeline", "device")
ROBOTS = [random_robot(seed) for seed in range(3)]
MIXED = [gymnasium_path("ant"), gymnasium_path("hopper"), gymnasium_path("humanoid"), OWN["pile"], *ROBOTS]


def state(sim: Simulation, group: Any) -> list[bytes]:
    names = ("qpos", "qvel", "qacc_warmstart", "nstep")
    return [to_host(group.field(name)).tobytes() for name in names]


def alone(model: Any, worlds: int, steps: int) -> list[bytes]:
    sim = Simulation(model, worlds, backend="cuda", executor="serial")
    for _ in range(steps):
        sim.step()
    return state(sim, sim.groups[0])


@pytest.mark.gpu
@pytest.mark.parametrize("executor", EXECUTORS)
def test_groups_come_and_go_while_the_others_go_on(executor: str) -> None:
    sim = Simulation([(ROBOTS[0], 3), (ROBOTS[1], 2)], backend="cuda", executor=executor)
    first, second = sim.groups
    sim.step(10)
    third = sim.add_group(ROBOTS[2], 4)
    sim.step(5)
    second.paused = True
    sim.step(2)
    second.paused = False
    sim.step(3)
    assert state(sim, second) == alone(ROBOTS[1], 2, 18)
    sim.remove_group(second)
    sim.step(4)
    assert state(sim, first) == alone(ROBOTS[0], 3, 24)
    assert state(sim, third) == alone(ROBOTS[2], 4, 14)


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("executor", "emission", "options"),
    [
        ("graph-cached", "whole", {}),
        ("graph-cached", "ahead", {}),
        ("graph-cached", "ahead", {"together": 1}),
        ("graph-cached", "ahead", {"graph_of": "run"}),
        ("streams", "ahead", {}),
        ("streams", "counted", {}),
        ("streams", "counted", {"compiled": False}),
        ("serial", "ahead", {}),
        ("serial", "counted", {}),
    ],
)
def test_groups_that_pause_at_random_are_as_if_alone(executor: str, emission: str, options: dict[str, Any]) -> None:
    models = [*ROBOTS, *ROBOTS, gymnasium_path("ant"), gymnasium_path("hopper")]
    sim = Simulation(
        [(model, 3) for model in models],
        backend="cuda",
        executor=executor,
        emission=emission,
        executor_options=options,
    )
    draw, steps = np.random.default_rng(0), np.zeros(len(models), int)
    for _ in range(30):
        paused = draw.random(len(models)) < 0.3
        for group, off in zip(sim.groups, paused.tolist(), strict=True):
            group.paused = off
        sim.step()
        steps += ~paused
    for model, group, made in zip(models, sim.groups, steps.tolist(), strict=True):
        assert state(sim, group) == alone(model, 3, made)


@pytest.mark.gpu
@pytest.mark.parametrize("executor", EXECUTORS[:-1])
def test_every_group_of_a_mixed_batch_is_its_model_alone(executor: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where arenas start so small that they have to grow in the middle of a step."""
    monkeypatch.setattr(store, "first_entries", lambda *_: 2)
    sim = Simulation([(model, 20) for model in MIXED], backend="cuda", executor=executor)
    for _ in range(4):
        sim.step(10)
    for model, group in zip(MIXED, sim.groups, strict=True):
        assert state(sim, group) == alone(model, 20, 40)


@pytest.mark.gpu
@pytest.mark.parametrize("emission", ["ahead", "counted"])
def test_a_graph_is_traced_and_was_legal(emission: str) -> None:
    dense = [model for model in MIXED if model is not OWN["pile"]]  # what is solved by islands waits for counts
    sim = Simulation([(model, 8) for model in dense], backend="cuda", executor="graph-cached", emission=emission)
    sim.step(20)
    trace = sim.schedule.trace_step()
    assert not validate(trace.order, trace, sim.schedule.segments, slack=2e-6)
    assert len(trace.events) == len(trace.order) > 50
    assert all(np.isfinite(event.end) and event.end >= event.start for event in trace.events)
    assert emission == "counted" or trace.concurrency() > 1


def seconds(sim: Simulation, steps: int) -> float:
    """Seconds that steps take."""
    sim.synchronize()
    began = time.perf_counter()
    sim.step(steps)
    sim.synchronize()
    return time.perf_counter() - began


@pytest.mark.gpu
def test_workers_of_every_number_of_lanes_find_room() -> None:
    """Models of 8, 16 and 32 lanes, and columns: a class with hardly any resident block takes 20 times as long."""
    models = [mujoco.MjModel.from_xml_path(str(gymnasium_path(name))) for name in ("hopper", "ant", "humanoid")]
    models[2].opt.solver = mujoco.mjtSolver.mjSOL_NEWTON
    sims = [
        Simulation([(model, 64) for model in models], backend="cuda", executor=executor, emission="ahead")
        for executor in ("serial", "device")
    ]
    for sim in sims:
        sim.step(5)

    def speed() -> float:
        """Of workers, over one call after another."""
        serial, device = (seconds(sim, 10) for sim in sims)
        return serial / device

    assert best(speed, 0.5) > 0.5
    for one, other in zip(*(sim.groups for sim in sims), strict=True):
        assert state(sims[0], one) == state(sims[1], other)
