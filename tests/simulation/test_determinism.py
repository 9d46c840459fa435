"""The same bits under every executor, window, number of workers, shard split, batch order and batch size."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from simengine import Simulation
from simengine.state.fields import FIELDS
from simengine_scheduler import Executor, make_executor, validate
from tests.emission.worlds import Start, ant, ant_start, host, snapshot
from tests.models import OWN

WORLDS = 24
STEPS = 50
DTYPES = ("float32", "float64")

SETTINGS: dict[str, dict[str, Any]] = {
    "serial": {"executor": "serial"},
    "serial, 2 shards": {"executor": "serial", "shards": 2},
    "serial, 3 shards": {"executor": "serial", "shards": 3},
    "serial, 7 shards": {"executor": "serial", "shards": 7},
    "serial, a shard a world": {"executor": "serial", "shards": WORLDS},
    **{
        f"shuffled, seed {seed}": {
            "executor": "shuffled",
            "shards": 1 + 2 * (seed % 3),
            "executor_options": {"seed": seed},
        }
        for seed in range(6)
    },
    **{
        f"shuffled, window {window}": {"executor": "shuffled", "shards": 3, "executor_options": {"window": window}}
        for window in (1, 2, 8, 32)
    },
    **{
        f"threads, {workers} workers": {
            "executor": "threads",
            "emission": "counted",
            "shards": 7,
            "executor_options": {"workers": workers},
        }
        for workers in (1, 2, 3, 4)
    },
    "whole steps, 7 shards": {"executor": "threads", "emission": "whole", "shards": 7},
    **{
        f"threads, window {window}": {
            "executor": "threads",
            "emission": "counted",
            "shards": 3,
            "executor_options": {"workers": 2, "window": window},
        }
        for window in (1, 2, 8, 32)
    },
    **{
        f"simulated, {model}": {"executor": "simulated", "shards": 3, "executor_options": {"model": model}}
        for model in ("streams", "acs-hw")
    },
    "by default": {},
}


@cache
def controls(worlds: int = WORLDS) -> np.ndarray:
    """(STEPS, worlds, nu) beyond their range now and then."""
    return np.random.default_rng(5).uniform(-1.2, 1.2, size=(STEPS, worlds, ant().nu)).astype(np.float32)


def rolled(sim: Simulation, start: Start, ctrls: np.ndarray) -> Simulation:
    """The simulation after one step for each set of controls."""
    sim.set_state(qpos=start.qpos, qvel=start.qvel)
    for ctrl in ctrls:
        sim.step(ctrl=ctrl)
    return sim


@cache
def golden(dtype: str) -> dict[str, np.ndarray]:
    """The state after the run of the plain serial setting."""
    sim = rolled(host(ant(), WORLDS, executor="serial", shards=1, dtype=dtype), ant_start(WORLDS), controls())
    return {name: np.array(getattr(sim, name)) for name in ("qpos", "qvel")}


def assert_golden(sim: Simulation, dtype: str, worlds: Any = slice(None)) -> None:
    """Equal to the golden run bit for bit, in the given worlds of that run."""
    for name, values in golden(dtype).items():
        np.testing.assert_array_equal(np.asarray(getattr(sim, name)), values[worlds], err_msg=name)


def test_the_golden_run_moves_and_collides() -> None:
    """Otherwise the comparisons below would compare little."""
    rows, sim = [], host(ant(), WORLDS, executor="serial", shards=1)
    sim.set_state(**ant_start(WORLDS)._asdict())
    for ctrl in controls():
        sim.step(ctrl=ctrl)
        rows.append(sim.schedule.counts()["nefc"])
    assert min(rows) > 20
    assert len(set(rows)) > 10
    assert np.isfinite(golden("float32")["qvel"]).all()
    assert len(np.unique(golden("float32")["qpos"][:, 0])) == WORLDS


@pytest.mark.parametrize("dtype", [pytest.param("float64", marks=pytest.mark.slow), "float32"])
@pytest.mark.parametrize("setting", SETTINGS)
def test_every_setting_gives_the_same_bits(setting: str, dtype: str) -> None:
    sim = rolled(host(ant(), WORLDS, dtype=dtype, **SETTINGS[setting]), ant_start(WORLDS), controls())
    assert_golden(sim, dtype)
    sim.close()


@pytest.mark.parametrize("dtype", DTYPES)
def test_permuting_worlds_permutes_results(dtype: str) -> None:
    order = np.random.default_rng(1).permutation(WORLDS)
    start = Start(*(values[order] for values in ant_start(WORLDS)))
    sim = rolled(host(ant(), WORLDS, dtype=dtype, shards=3), start, controls()[:, order])
    assert_golden(sim, dtype, order)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("worlds", [[0], [1], [2], [5, 11, 17]])
def test_a_world_does_not_know_its_batch(worlds: list[int], dtype: str) -> None:
    start = Start(*(values[worlds] for values in ant_start(WORLDS)))
    sim = rolled(host(ant(), len(worlds), dtype=dtype), start, controls()[:, worlds])
    assert_golden(sim, dtype, worlds)


def test_a_world_does_not_know_the_other_models() -> None:
    sim = Simulation([(OWN["pile"], 5), (ant(), WORLDS), (OWN["two_arms"], 3)], backend="host")
    sim.groups[1].set_state(**ant_start(WORLDS)._asdict())
    for ctrl in controls():
        sim.groups[1].set_state(ctrl=ctrl)
        sim.step()
    for name, values in golden("float32").items():
        np.testing.assert_array_equal(np.asarray(getattr(sim.groups[1], name)), values)


def test_several_steps_in_one_call_are_single_steps() -> None:
    sims = [host(ant(), WORLDS, shards=3, executor=name) for name in ("serial", "threads")]
    for sim in sims:
        sim.set_state(**ant_start(WORLDS)._asdict(), ctrl=controls()[0])
    for _ in range(20):
        sims[0].step()
    sims[1].step(20)
    assert snapshot(sims[0]) == snapshot(sims[1])


def recorder(sim: Simulation, executor: str) -> Executor:
    """An executor that records the order in which it runs calls."""
    return make_executor(executor, **{**sim.schedule.options, "record": "order", "workers": 4})


@pytest.mark.parametrize("executor", ["serial", "threads", "shuffled", "simulated"])
def test_a_recorded_run_is_legal(executor: str) -> None:
    sim = host(ant(), WORLDS, shards=4)
    sim.set_state(**ant_start(WORLDS)._asdict())
    recording = recorder(sim, executor)
    for ctrl in controls()[:3]:
        trace = sim.schedule.run(recording, ctrl=ctrl)
        assert len(trace.order) == len(sim.schedule.kernel_list)
        assert validate(trace.order, trace, sim.schedule.segments) == []
    recording.close()


def test_a_recorded_run_is_out_of_program_order() -> None:
    """The shuffled executor does shuffle, so that the comparisons above mean something."""
    sim = host(ant(), WORLDS, shards=4)
    sim.set_state(**ant_start(WORLDS)._asdict())
    trace = sim.schedule.run(recorder(sim, "shuffled"), ctrl=controls()[0])
    issued = [step.seq for step in trace.log if step.kind == "issue"]
    assert issued != sorted(issued)
    assert sorted(issued) == list(range(len(issued)))


@pytest.mark.parametrize("dtype", DTYPES)
def test_reported_fields_agree_between_executors(dtype: str) -> None:
    """Every world field after a step that keeps it, and after forward()."""
    names = tuple(f.name for f in FIELDS if f.space == "world" and f.name not in ("con_adr", "efc_adr", "efc_J_adr"))
    found: list[dict[str, bytes]] = []
    for setting in ("serial", "shuffled, seed 2", "threads, 4 workers"):
        sim = rolled(
            host(ant(), WORLDS, keep=names, dtype=dtype, **SETTINGS[setting]), ant_start(WORLDS), controls()[:10]
        )
        fields = {name: np.asarray(sim.field(name)).tobytes() for name in names}
        sim.forward()
        fields |= {f"{name} after forward": np.asarray(sim.field(name)).tobytes() for name in names}
        for world in (0, 1, 2):
            fields |= {f"{name} of {world}": x.tobytes() for name, x in sim.contacts(world)._asdict().items()}
            fields |= {f"{name} of {world}": x.tobytes() for name, x in sim.constraints(world)._asdict().items()}
        found.append(fields)
    for other in found[1:]:
        assert [name for name in other if other[name] != found[0][name]] == []
