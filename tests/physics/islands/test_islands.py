"""Worlds of many trees, solved island by island, against MuJoCo, the dense solution, and other executors and splits."""

from __future__ import annotations

from functools import cache
from typing import Any

import mujoco
import numpy as np
import pytest

from simengine import Model, Simulation, check_model
from simengine.backends.host import HostBackend
from simengine.engines.list_engine import ListEngine
from simengine.model import ModelTable, load_table
from simengine.plan import catalogue
from simengine.plan import islands as island_kernels
from simengine.plan.evaluation import plan_evaluation
from simengine.plan.selection import Selection
from simengine.state.fields import FIELDS
from tests.helpers.islands import crooked, dense, dropped, every_row, heap, roped

STEPS = (0, 20, 60, 150)
DTYPES = ("float64", "float32")
ONE_TREE = '<mujoco><worldbody><body><freejoint/><geom size="0.1"/></body></worldbody></mujoco>'


@cache
def model(bodies: int = 12, integrator: str = "Euler") -> ModelTable:
    """A heap for MuJoCo and the engine, both converging."""
    return load_table(heap(bodies, integrator=integrator).replace("<option", '<option tolerance="1e-12"'))


def start(of: ModelTable) -> dict[str, np.ndarray]:
    """States that MuJoCo reaches by dropping the heap."""
    return dropped(heap(sum(of.mj.jnt_type == mujoco.mjtJoint.mjJNT_FREE)), STEPS)


def simulated(of: ModelTable, dtype: str = "float64", **options: Any) -> Simulation:
    """Worlds in the dropped states, on the host."""
    sim = Simulation(Model(of), len(STEPS), backend="host", dtype=dtype, **options)
    sim.set_state(**start(of))
    return sim


def bodies_by_island(labels: np.ndarray) -> set[frozenset[int]]:
    """Groups of things with the same label; negative ones have none."""
    return {frozenset(np.flatnonzero(labels == label).tolist()) for label in np.unique(labels[labels >= 0])}


def test_blocks_are_trees_and_what_tendons_join() -> None:
    m = model()
    assert m.has_islands
    assert m.nblock == m.mj.ntree
    across = heap(12).replace('joint="elbow0"', 'joint="elbow1"')
    joined = load_table(across)
    assert joined.nblock == 1  # the arms come first and last, so that all between them are one range of dofs
    assert not joined.has_islands
    assert not load_table(ONE_TREE).has_islands
    by_pgs = [xml.replace("<option", '<option solver="PGS"') for xml in (heap(12), roped(heap(12)))]
    by_pgs.append(by_pgs[0].replace("<default>", '<option><flag island="disable"/></option><default>'))
    assert [load_table(xml).has_islands for xml in by_pgs] == [True, False, False]  # which solves tree by tree


def test_nothing_dense_is_read() -> None:
    everything = frozenset(f.name for f in FIELDS)
    kernels = plan_evaluation(Selection(model(), 1, "euler", everything, ahead=False), 0).kernels
    assert island_kernels.in_blocks(catalogue.SENSE_MOTION) in kernels
    for kernel in kernels:
        assert not {"qM", "qLD", "efc_J"} & {kernel.stored_as(name) for name in kernel.reads}, kernel.name


@pytest.mark.parametrize("dtype", DTYPES)
def test_all_fields_agree_with_mujoco(dtype: str) -> None:
    report = check_model(heap(12), num_states=24, backend="host", dtype=dtype)
    assert report.passed, report


@pytest.mark.parametrize("integrator", ["Euler", "implicit"])
def test_steps_with_dampers_of_any_order_agree_with_mujoco(integrator: str) -> None:
    crooked_heap = load_table(crooked(heap(12, integrator=integrator)))
    assert crooked_heap.has_islands
    report = check_model(Model(crooked_heap), num_states=8, num_steps=60, backend="host", dtype="float64")
    assert report.passed, report


@pytest.mark.parametrize("integrator", ["implicit", "implicitfast"])
def test_implicit_steps_agree_with_mujoco(integrator: str) -> None:
    """Free bodies that spin alone are the trees of which MuJoCo's implicitfast takes all of the derivative."""
    report = check_model(heap(12, integrator=integrator), num_states=12, backend="host", dtype="float64")
    assert report.passed, report


def test_paths_through_space_join_the_trees_they_touch() -> None:
    m = load_table(roped(heap(12)))
    assert m.has_islands
    assert m.nblock == m.mj.ntree - 2
    assert (m.dof_block[m.tendon_dof] == [0, 4, 5, 6]).all()


ROWS_BY_SOLVER = {
    "solve_newton_general": every_row(roped(heap(12))),
    # does not converge, but takes the same steps in every island
    "solve_pgs": every_row(heap(12)).replace("<option", '<option solver="PGS"'),
    "solve_cg": heap(12).replace("<option", '<option solver="CG" iterations="1000"'),
}


@pytest.mark.parametrize("solver", ROWS_BY_SOLVER)
def test_every_solver_agrees_with_mujoco(solver: str) -> None:
    """With rows of every type, but for CG, of which MuJoCo's stops 0.3 % short of the solution on those."""
    xml = ROWS_BY_SOLVER[solver]
    assert load_table(xml).solver == solver
    assert load_table(xml).has_islands
    report = check_model(xml, num_states=16, num_steps=100, backend="host", dtype="float64")
    assert report.passed, report


@pytest.mark.parametrize("integrator", ["Euler", "RK4"])
def test_steps_are_those_of_the_dense_solution(integrator: str) -> None:
    sims = [simulated(form) for form in (model(12, integrator), dense(model(12, integrator)))]
    for sim in sims:
        sim.step(40)
        sim.forward()
    for name in ("qpos", "qacc", "qM", "qLD", "qfrc_constraint", "cfrc_ext"):
        ours, theirs = (np.asarray(sim.field(name)) for sim in sims)
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-6 * max(1.0, np.abs(theirs).max()), err_msg=name)
    rows = [sim.constraints(len(STEPS) - 1) for sim in sims]
    for ours, theirs in zip(*rows, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-6 * max(1.0, np.abs(theirs).max()))


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_tower_is_one_large_island(dtype: str) -> None:
    """More dofs than dense matrices may have, so that zeros are left out."""
    m = load_table(heap(14, clump=14, rise=0.15).replace("<option", '<option tolerance="1e-12"'))
    data = mujoco.MjData(m.mj)
    mujoco.mj_forward(m.mj, data)
    assert max(data.island_nv[: data.nisland]) > 64
    sim = Simulation(Model(m), 1, backend="host", dtype=dtype)
    sim.forward()
    for name in ("qacc", "qfrc_constraint"):
        ours, theirs = np.asarray(sim.field(name))[0], getattr(data, name)
        error = np.abs(ours - theirs).max() / np.abs(theirs).max()
        assert error < {"float64": 1e-9, "float32": 2e-3}[dtype], f"{name} is off by {error:.1e}"


def test_islands_are_those_of_mujoco() -> None:
    m = model()
    states = start(m)
    engine = ListEngine([(m, len(states["qpos"]))], HostBackend(), "serial", "float64", None, "counted", {})
    for name, values in (m.initial | states).items():
        engine.put(0, name, None, values)
    engine.forward()
    for world, (qpos, qvel) in enumerate(zip(*states.values(), strict=True)):
        data = mujoco.MjData(m.mj)
        data.qpos, data.qvel = qpos, qvel
        mujoco.mj_forward(m.mj, data)
        ours = bodies_by_island(engine.get(0, "block_island")[world][m.dof_block])
        assert ours == bodies_by_island(data.dof_island), f"world {world}"
        assert engine.get(0, "nisland")[world] == data.nisland


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_setting_gives_the_same_bits(dtype: str) -> None:
    results = []
    for options in ({"executor": "serial", "shards": 1}, {"executor": "shuffled", "shards": 3}, {"shards": 2}):
        sim = simulated(model(), dtype, **options)
        sim.step(30)
        results.append(np.array(sim.qpos))
        sim.close()
    assert np.isfinite(results[0]).all()
    for other in results[1:]:
        np.testing.assert_array_equal(other, results[0])


def test_a_world_that_fails_is_frozen_and_leaves_the_others_alone() -> None:
    m = model()
    alone, sim = simulated(m), simulated(m, on_nonfinite="freeze")
    qvel = start(m)["qvel"].copy()
    qvel[1] = 1e200
    sim.set_state(qvel=qvel)
    for each in (alone, sim):
        each.step(5)
    status = np.asarray(sim.field("world_status"))
    assert status[1] != 0
    assert (np.delete(status, 1) == 0).all()
    np.testing.assert_array_equal(np.delete(sim.qpos, 1, 0), np.delete(alone.qpos, 1, 0))
    np.testing.assert_array_equal(sim.qpos[1], start(m)["qpos"][1])


def test_without_rows_everything_falls_freely() -> None:
    m = model()
    sim = Simulation(Model(m), 2, backend="host", dtype="float64")
    qpos = np.array(m.qpos0)
    qpos[m.mj.jnt_qposadr[m.mj.jnt_type == mujoco.mjtJoint.mjJNT_FREE] + 2] += 10 * np.arange(1, 13)
    sim.set_state(qpos=qpos)
    sim.forward()
    assert sim.schedule.counts()["nefc"] == 0
    np.testing.assert_array_equal(sim.field("qacc"), sim.field("qacc_smooth"))
    assert not np.asarray(sim.field("qfrc_constraint")).any()
