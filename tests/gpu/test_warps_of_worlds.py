"""Worlds of up to 32 dofs and many constraint rows, which several warps solve: against MuJoCo, and their bits."""

from __future__ import annotations

import pytest

from simengine import Simulation, check_model, load_model
from simengine.plan.launches import Launch
from simengine.zoo import pile_xml
from tests.gpu.compare import cuda_only, host_later, state_bits
from tests.gpu.test_wide_worlds import snake

LOSS = 'frictionloss="0.01"'
MODELS = {
    "snake of 8 dofs": snake('cone="elliptic"', LOSS, links=2).replace('size="0.03"', 'size="0.03" condim="6"'),
    "snake of 14 dofs": snake('cone="elliptic"', LOSS, links=8),
    "snake of 20 dofs": snake('cone="elliptic" impratio="5"', LOSS, links=14),
    "snake of 30 dofs": snake('integrator="implicitfast"', LOSS, links=24),
    "snake in four evaluations": snake('cone="elliptic" integrator="RK4"', LOSS, links=10),
    "heap": pile_xml(5, "mixed").replace("<option", '<option cone="elliptic"', 1),
}


def agrees(backend: str, name: str) -> None:
    """Raise AssertionError unless a model's steps are MuJoCo's."""
    model = load_model(MODELS[name])
    assert model.nv <= 32
    assert not model.table.has_islands
    assert model.table.solver == "solve_newton_general"
    assert model.table.nefc_max > 32
    report = check_model(model, backend=backend, dtype="float32", num_states=12, num_steps=20)
    assert report.passed, report.verdict()


@host_later
@pytest.mark.parametrize("name", MODELS)
def test_worlds_of_many_rows_agree_with_mujoco(backend: str, name: str) -> None:
    agrees(backend, name)


@cuda_only
@pytest.mark.parametrize("name", MODELS)
def test_worlds_of_many_rows_have_the_same_bits_under_every_executor(backend: str, name: str) -> None:
    found = []
    ways = [("serial", "auto"), ("graph-cached", "auto"), ("streams", "auto"), ("device", "auto"), ("serial", "stages")]
    for executor, emission in ways:
        sim = Simulation(load_model(MODELS[name]), 20, backend=backend, executor=executor, emission=emission)
        sim.step(40)
        found.append(state_bits(sim))
        sim.close()
    assert all(one == found[0] for one in found)


@cuda_only
@pytest.mark.parametrize("name", MODELS)
def test_worlds_have_the_same_bits_in_shards_of_few_worlds(
    backend: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One warp solves a world of 33 to 64 rows in a shard of many worlds, and two in shards of few."""
    monkeypatch.setattr("simengine.plan.selection.FEW_WORLDS_BY_TWO_WARPS", 32)
    found, lanes = [], []
    for shards in (1, 4):
        sim = Simulation(load_model(MODELS[name]), 64, backend=backend, executor="serial", shards=shards)
        launches = sim.schedule.plan().step(64 // shards, frozenset(), False)[0].launches
        kernels = [item.kernel for item in launches if isinstance(item, Launch)]
        lanes.append(min(kernel.own_lanes for kernel in kernels if kernel.solver_warps))
        sim.step(40)
        found.append(state_bits(sim))
        sim.close()
    assert lanes == [32, 64]
    assert found[0] == found[1]
