"""The same bits under every executor, completion, window, number of streams, shard split and batch size.

`tests/simulation/test_determinism.py` has the same for the host.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from simengine import Model, Simulation, load_model
from simengine.state.fields import FIELDS
from simengine_scheduler import Executor, make_executor, validate
from tests.emission.worlds import Start, ant, ant_start
from tests.gpu.cases import case, heap_xml
from tests.gpu.compare import CUDA, cuda_only, host_later, state_bits, to_host
from tests.models import OWN

WORLDS, STEPS = 64, 30
BATCHES = {"cuda": (1, 5, 64, 3000, 9000), "host": (1, 5, 64)}
"""On the GPU the largest share blocks by two and by eight worlds, the others have a block for each."""

Setting = dict[str, Any]


def streams(completion: str, window: int, count: int, shards: int) -> Setting:
    """Options of a simulation on CUDA streams."""
    options = {"completion": completion, "window": window, "streams": count}
    return {"executor": "streams", "shards": shards, "executor_options": options}


def planned(name: str, planner: str, emission: str = "counted") -> Setting:
    """Options of a simulation whose runs of calls are planned."""
    return {"executor": name, "emission": emission, "shards": 3, "executor_options": {"stream_policy": planner}}


ON_HOST: dict[str, Setting] = {
    "serial, 3 shards": {"executor": "serial", "shards": 3},
    "shuffled": {"executor": "shuffled", "shards": 4, "executor_options": {"seed": 3}},
    "ahead of its counts": {"emission": "ahead", "shards": 2},
    "by default": {},
}
ON_CUDA: dict[str, Setting] = {
    **{f"serial, {shards} shards": {"executor": "serial", "shards": shards} for shards in (1, 2, 3)},
    **{
        f"{completion}, window {window}, {count} streams, {shards} shards": streams(completion, window, count, shards)
        for completion in ("events", "polling")
        for window in (1, 2, 8, 32)
        for count in (1, 2, 8)
        for shards in (1, 2, 3)
    },
    **{
        f"policies {stream_policy}, {policy}": {
            "executor": "streams",
            "shards": 3,
            "executor_options": {"stream_policy": stream_policy, "policy": policy, "completion": completion},
        }
        for completion, stream_policy, policy in (
            ("events", "least_loaded", "fifo"),
            ("events", "round_robin", "fifo"),
            ("polling", "follow", "lifo"),
            ("polling", "follow", "critical"),
        )
    },
    "a shard a world": {"executor": "streams", "shards": WORLDS},
    **{
        f"{name}, {emission}, {shards} shards": {"executor": name, "emission": emission, "shards": shards}
        for name, emission in (("serial", "ahead"), ("streams", "ahead"), ("graph", "ahead"), ("graph", "counted"))
        for shards in (1, 3)
    },
    **{
        f"graph-cached, {emission}, {shards} shards": {
            "executor": "graph-cached",
            "emission": emission,
            "shards": shards,
        }
        for emission in ("ahead", "counted")
        for shards in (1, 2, 3)
    },
    **{
        f"device, window {window}, {'tiled, ' if tiled else ''}{emission}, {shards} shards": {
            "executor": "device",
            "emission": emission,
            "shards": shards,
            "executor_options": {"window": window, "tiled": tiled},
        }
        for emission, shards, window, tiled in (
            ("ahead", 1, 32, True),
            ("ahead", 1, 32, False),
            ("ahead", 3, 3, True),
            ("ahead", 3, 64, True),
            ("counted", 2, 32, True),
        )
    },
    **{
        f"pipeline, {emission}, {count} streams, {depth} deep, {shards} shards": {
            "executor": "pipeline",
            "emission": emission,
            "shards": shards,
            "executor_options": {"streams": count, "depth": depth},
        }
        for emission in ("ahead", "counted")
        for count, depth, shards in ((8, 2, 1), (8, 2, 3), (2, 1, 5))
    },
    **{
        f"{name} planned by {planner}, {emission}": planned(name, planner, emission)
        for planner in ("kesco", "opara")
        for name, emission in (
            ("streams", "ahead"),
            ("streams", "counted"),
            ("graph-cached", "ahead"),
            ("graph-cached", "counted"),
        )
    },
    "by default": {},
    "by default again": {},
}

settings = pytest.mark.parametrize(
    ("backend", "setting"),
    [
        *(pytest.param("host", s, marks=pytest.mark.slow) for s in ON_HOST),
        *(pytest.param(*CUDA.values, s, marks=CUDA.marks) for s in ON_CUDA),
    ],
)


@cache
def controls(worlds: int) -> np.ndarray:
    """(STEPS, worlds, nu) beyond their range now and then; those of a world do not depend on how many there are."""
    ctrls = np.random.default_rng(5).uniform(-1.2, 1.2, size=(worlds, STEPS, ant().nu))
    return ctrls.astype(np.float32).swapaxes(0, 1)


def rolled(sim: Simulation, start: Start, ctrls: np.ndarray, group: int = 0) -> Simulation:
    """The simulation after one step for each set of controls of a group."""
    sim.groups[group].set_state(**start._asdict())
    for ctrl in ctrls:
        sim.groups[group].set_state(ctrl=ctrl)
        sim.step()
    return sim


def fresh(backend: str, worlds: int, **setting: Any) -> Simulation:
    """Ants on a backend."""
    return Simulation(ant(), num_worlds=worlds, backend=backend, **setting)


@cache
def golden(backend: str, dtype: str, worlds: int = WORLDS) -> Simulation:
    """The plain serial run."""
    sim = fresh(backend, worlds, executor="serial", shards=1, dtype=dtype)
    return rolled(sim, ant_start(worlds), controls(worlds))


@settings
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_setting_gives_the_same_bits(backend: str, setting: str, dtype: str) -> None:
    chosen = (ON_HOST if backend == "host" else ON_CUDA)[setting]
    sim = rolled(fresh(backend, WORLDS, dtype=dtype, **chosen), ant_start(WORLDS), controls(WORLDS))
    assert state_bits(sim) == state_bits(golden(backend, dtype))
    sim.close()


@host_later
def test_the_run_moves_and_collides(backend: str) -> None:
    """Otherwise the comparisons would compare little."""
    sim, rows = fresh(backend, WORLDS), []
    sim.set_state(**ant_start(WORLDS)._asdict())
    for ctrl in controls(WORLDS):
        sim.step(ctrl=ctrl)
        rows.append(sim.schedule.counts()["nefc"])
    assert min(rows) > WORLDS / 3
    assert len(set(rows)) > 10
    qpos = to_host(golden(backend, "float32").qpos)
    assert np.isfinite(qpos).all()
    assert len(np.unique(qpos[:, 0])) == WORLDS


@host_later
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_world_does_not_know_its_batch(backend: str, dtype: str) -> None:
    """World k of a batch is the world k of a larger one, and a world alone."""
    *smaller, largest = BATCHES[backend]
    start, ctrls, whole = ant_start(largest), controls(largest), golden(backend, dtype, largest)
    chosen = [np.arange(n) for n in smaller] + [np.array([k]) for k in (2, largest // 2, largest - 1)]
    chosen.append(np.random.default_rng(0).permutation(largest)[:50])
    for worlds in chosen:
        part = Start(*(values[worlds] for values in start))
        sim = rolled(fresh(backend, len(worlds), dtype=dtype), part, ctrls[:, worlds])
        assert state_bits(sim) == state_bits(whole, worlds=worlds), f"{len(worlds)} worlds"
        sim.close()


@host_later
def test_a_world_does_not_know_the_other_models(backend: str) -> None:
    """Models of 8, 16, 32 lanes and beyond in one list."""
    others = [load_model(xml) for xml in (OWN["two_arms"], OWN["pile"], heap_xml())]
    groups = [(others[0], 7), (ant(), WORLDS), (others[1], 9), (others[2], 5)]
    sim = rolled(Simulation(groups, backend=backend), ant_start(WORLDS), controls(WORLDS), group=1)
    assert state_bits(sim, 1) == state_bits(golden(backend, "float32"))
    for index in (0, 2, 3):
        alone = Simulation(*groups[index], backend=backend)
        alone.step(STEPS)
        assert state_bits(sim, index) == state_bits(alone)


@cuda_only
@pytest.mark.parametrize("name", ["pile", "heap"])
def test_models_beyond_the_ant(backend: str, name: str) -> None:
    """A full group of lanes, and matrices larger than a group, with rows of every class."""
    model, states = case(name).model, case(name).states
    bits = []
    for setting in ({"executor": "serial", "shards": 1}, streams("events", 32, 8, 3), streams("polling", 8, 8, 2), {}):
        sim = Simulation(Model(model), len(states["qpos"]), backend=backend, **setting)
        sim.set_state(**states)
        sim.step(STEPS)
        bits.append(state_bits(sim))
    assert all(other == bits[0] for other in bits[1:])


@host_later
def test_several_steps_in_one_call_are_single_steps(backend: str) -> None:
    once, often = (fresh(backend, WORLDS, shards=3) for _ in range(2))
    for sim in (once, often):
        sim.set_state(**ant_start(WORLDS)._asdict(), ctrl=controls(WORLDS)[0])
    once.step(STEPS)
    for _ in range(STEPS):
        often.step()
    assert state_bits(once) == state_bits(often)


@cuda_only
@pytest.mark.parametrize("executor", ["graph-cached", "pipeline"])
@pytest.mark.parametrize("keep", [(), ("xpos",)])
def test_steps_that_shards_take_on_their_own_are_single_steps(
    backend: str, executor: str, keep: tuple[str, ...]
) -> None:
    """Shards of a pipeline drift apart by whole steps, also where arenas have to grow in between."""
    once = fresh(backend, WORLDS, executor=executor, shards=5, emission="ahead", keep=keep)
    once.set_state(**ant_start(WORLDS)._asdict(), ctrl=controls(WORLDS)[0])
    often = fresh(backend, WORLDS, executor="serial", shards=1, keep=keep)
    often.set_state(**ant_start(WORLDS)._asdict(), ctrl=controls(WORLDS)[0])
    for _ in range(2):
        once.step(STEPS)
        for _ in range(STEPS):
            often.step()
    assert state_bits(once) == state_bits(often)
    for name in keep:
        assert to_host(once.field(name)).tobytes() == to_host(often.field(name)).tobytes()


@host_later
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_reported_fields_agree_between_executors(backend: str, dtype: str) -> None:
    """Every world field after a step that keeps it, and after forward(); contacts and rows of some worlds."""
    names = tuple(f.name for f in FIELDS if f.space == "world" and f.name not in ("con_adr", "efc_adr", "efc_J_adr"))
    found: list[dict[str, bytes]] = []
    for setting in ({"executor": "serial", "shards": 1}, {"shards": 3}):
        sim = fresh(backend, WORLDS, dtype=dtype, keep=names, **setting)
        rolled(sim, ant_start(WORLDS), controls(WORLDS)[:10])
        fields = {name: to_host(sim.field(name)).tobytes() for name in names}
        sim.forward()
        fields |= {f"{name} after forward": to_host(sim.field(name)).tobytes() for name in names}
        for world in range(0, WORLDS, 9):
            fields |= {f"{name} of {world}": x.tobytes() for name, x in sim.contacts(world)._asdict().items()}
            fields |= {f"{name} of {world}": x.tobytes() for name, x in sim.constraints(world)._asdict().items()}
        found.append(fields)
    assert [name for name in found[0] if found[0][name] != found[1][name]] == []


RECORDED = {
    "host": [{"executor": "serial"}, {"executor": "shuffled"}, {}],
    "cuda": [
        {"executor": "serial"},
        *(streams(completion, n, count, 3) for completion in ("events", "polling") for n, count in ((32, 8), (2, 2))),
        *({"executor": name} for name in ("graph", "graph-cached", "device")),
        *({"executor": "pipeline", "emission": emission} for emission in ("ahead", "counted")),
        *(planned(name, planner) for name in ("streams", "graph") for planner in ("kesco", "opara")),
    ],
}


def recorder(sim: Simulation, setting: Setting, record: str) -> Executor:
    """The executor of a setting, which records what it does."""
    options = {**sim.schedule.options, **setting.get("executor_options", {}), "record": record}
    return make_executor(setting.get("executor", sim.schedule.executor), **options)


@host_later
@pytest.mark.parametrize("record", ["order", "times"])
def test_recorded_runs_are_legal(backend: str, record: str) -> None:
    for setting in RECORDED[backend]:
        sim = fresh(backend, WORLDS, **{**setting, "shards": 3})
        sim.set_state(**ant_start(WORLDS)._asdict())
        executor = recorder(sim, setting, record)
        for ctrl in controls(WORLDS)[:3]:
            trace = sim.schedule.run(executor, ctrl=ctrl)
            assert len(trace.order) == len(sim.schedule.kernel_list)
            assert validate(trace.order, trace, sim.schedule.segments, slack=5e-6) == []
        executor.close()
        sim.close()


@cuda_only
def test_the_streams_executor_uses_its_streams(backend: str) -> None:
    """Several streams and event waits, so that the comparisons mean something."""
    setting = streams("events", 32, 8, 3)
    sim = fresh(backend, WORLDS, **setting)
    sim.set_state(**ant_start(WORLDS)._asdict())
    trace = sim.schedule.run(recorder(sim, setting, "order"))
    assert len({step.stream for step in trace.log if step.kind == "issue"}) >= 3
    assert trace.counters.waits_inserted > 0
