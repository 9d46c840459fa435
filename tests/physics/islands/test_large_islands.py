"""Large islands, solved without dense matrices: against MuJoCo, and against the dense solution of the same islands."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from simengine import Model, Simulation, check_model
from simengine.backends.host import HostBackend
from simengine.emission.store import GroupStore
from simengine.model import ModelTable, load_table
from simengine.plan import islands as island_kernels
from simengine.plan.evaluation import plan_evaluation
from simengine.plan.issue import Issue, Issuing
from simengine.plan.selection import Selection
from simengine.plan.step_plan import plan_step
from simengine.plan.variants import without_some_kinds
from simengine.state.fields import FIELDS
from simengine.state.island_fields import MOST_LARGE_DOFS
from tests.helpers.islands import dropped, every_row, heap, pile, roped

STEPS = (0, 20, 60, 150)
CONVERGED = '<option tolerance="1e-12" ls_tolerance="1e-8" iterations="200"'
"""Large islands stop where MuJoCo stops by its gradient, which the default tolerance leaves far from zero."""
EVERY_ROW = every_row(roped(heap(12)))
PILE_STEPS = (80, 300)


def without_dense(xml: str, dofs: int = 0) -> ModelTable:
    """A model whose islands of more than so many dofs are solved as large ones: all by default."""
    model = load_table(xml.replace("<option", CONVERGED, 1))
    model.solve_dense_up_to(dofs)
    return model


def solved_by_mujoco(model: ModelTable, qpos: np.ndarray, qvel: np.ndarray) -> mujoco.MjData:
    """MuJoCo's solution in a state."""
    data = mujoco.MjData(model.mj)
    data.qpos, data.qvel = qpos, qvel
    mujoco.mj_forward(model.mj, data)
    return data


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_piles_agree_with_mujoco(cone: str, dtype: str) -> None:
    model, states = without_dense(pile(cone), 64), dropped(pile(cone), PILE_STEPS)
    sim = Simulation(Model(model), len(PILE_STEPS), backend="host", dtype=dtype)
    sim.set_state(**states)
    sim.forward()
    for world, (qpos, qvel) in enumerate(zip(states["qpos"], states["qvel"], strict=True)):
        data = solved_by_mujoco(model, qpos, qvel)
        assert data.island_nv[: data.nisland].max() > 64
        assert sim.schedule.counts()["nefc"] > 0
        for name in ("qacc", "qfrc_constraint"):
            ours, theirs = np.asarray(sim.field(name))[world], getattr(data, name)
            error = np.abs(ours - theirs).max() / max(1.0, np.abs(theirs).max())
            assert error < {"float64": 1e-6, "float32": 2e-3}[dtype], f"{name} of world {world} is off by {error:.1e}"
    sim.close()


def test_a_huge_pile_agrees_with_mujoco() -> None:
    xml = pile("pyramidal", 130)
    model, states = without_dense(xml, 64), dropped(xml, (150,))
    sim = Simulation(Model(model), 1, backend="host", dtype="float64")
    sim.set_state(**states)
    sim.forward()
    data = solved_by_mujoco(model, states["qpos"][0], states["qvel"][0])
    assert data.island_nv[: data.nisland].max() > MOST_LARGE_DOFS
    assert np.abs(np.asarray(sim.field("qacc"))[0] - data.qacc).max() < 1e-6 * np.abs(data.qacc).max()
    sim.close()


def test_a_stiff_chain_of_unequal_masses_agrees_with_mujoco() -> None:
    """The Hessian of welds and a thousandfold mass is far from its blocks on the diagonal."""
    bodies = "".join(
        f'<body name="b{i}" pos="{0.21 * i} 0 0.1"><freejoint/><geom size="0.1" mass="{(1, 1000)[i % 2]}"/></body>'
        for i in range(30)
    )
    welds = "".join(f'<weld body1="b{i}" body2="b{i + 1}" solimp="0.99 0.9999 0.001"/>' for i in range(29))
    model = without_dense(f"""
<mujoco><option timestep="0.002"/><worldbody><geom type="plane" size="9 9 1"/>{bodies}</worldbody>
  <equality>{welds}</equality></mujoco>""")
    qvel = np.random.default_rng(0).normal(size=model.nv)
    sim = Simulation(Model(model), 1, backend="host", dtype="float64")
    sim.set_state(qvel=qvel[None])
    sim.forward()
    data = solved_by_mujoco(model, model.qpos0, qvel)
    assert np.abs(np.asarray(sim.field("qacc"))[0] - data.qacc).max() < 1e-6 * np.abs(data.qacc).max()
    sim.close()


@pytest.mark.parametrize("solver", ["Newton", "CG"])
def test_rows_of_every_type_agree_with_mujoco(solver: str) -> None:
    """Also in islands of few dofs, which the dense solver has else; of CG MuJoCo's stops short on equalities."""
    xml = EVERY_ROW if solver == "Newton" else heap(12).replace("<option", '<option solver="CG"')
    report = check_model(Model(without_dense(xml)), num_states=16, num_steps=60, backend="host", dtype="float64")
    assert report.passed, report


def test_projected_gauss_seidel_of_rows_of_every_type_agrees_with_mujoco() -> None:
    model = load_table(every_row(heap(12)).replace("<option", '<option solver="PGS"', 1))
    model.solve_dense_up_to(0)
    report = check_model(Model(model), num_states=6, num_steps=60, backend="host", dtype="float64")
    assert report.passed, report


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_projected_gauss_seidel_takes_the_steps_of_mujoco(cone: str) -> None:
    """Which it must where it does not converge."""
    xml, states = pile(cone), dropped(pile(cone), PILE_STEPS)
    model = load_table(xml.replace("<option", '<option solver="PGS" iterations="20"', 1))
    sim = Simulation(Model(model), len(PILE_STEPS), backend="host", dtype="float64")
    sim.set_state(**states)
    sim.forward()
    for world, (qpos, qvel) in enumerate(zip(states["qpos"], states["qvel"], strict=True)):
        data = solved_by_mujoco(model, qpos, qvel)
        assert np.asarray(sim.field("solver_niter"))[world] == data.solver_niter.max() == 20
        assert np.abs(np.asarray(sim.field("qacc"))[world] - data.qacc).max() < 1e-8 * np.abs(data.qacc).max()
    sim.close()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_dense_and_large_solutions_agree(dtype: str) -> None:
    fields, launched = [], []
    for dofs in (2**31 - 1, 0):
        sim = Simulation(Model(without_dense(EVERY_ROW, dofs)), len(STEPS), backend="host", dtype=dtype)
        sim.set_state(**dropped(heap(12), STEPS))
        sim.forward()
        launched.append([entry.name for entry in sim.schedule.kernel_list])
        fields.append({name: np.asarray(sim.field(name)) for name in ("qacc", "qfrc_constraint")})
        sim.close()
    assert launched[0] != launched[1]
    for name, dense in fields[0].items():
        scale = np.maximum(1.0, np.abs(dense).max(axis=1, keepdims=True))
        error = (np.abs(fields[1][name] - dense) / scale).max()
        assert error < {"float64": 1e-9, "float32": 1e-3}[dtype], f"{name} is off by {error:.1e}"


def test_large_worlds_have_kernels_for_blocks_of_threads() -> None:
    everything = frozenset(f.name for f in FIELDS)
    large = {*island_kernels.of_large_worlds(), *without_some_kinds()}  # those that `check_cuda` compiles for blocks
    for xml in (EVERY_ROW, heap(12, integrator="RK4"), heap(12, integrator="implicit")):
        for solver in ("Newton", "PGS"):
            model = load_table(xml.replace("<option", f'<option solver="{solver}"', 1))
            selection = Selection(model, 1, model.opt_integrator, everything, ahead=False)
            kernels = plan_evaluation(selection, 0).kernels if model.has_islands else ()
            assert {kernel for kernel in kernels if kernel.unit == "world"} <= large


def test_every_setting_gives_the_same_bits() -> None:
    results = []
    for options in ({"executor": "serial", "shards": 1}, {"executor": "shuffled", "shards": 3}):
        sim = Simulation(Model(without_dense(heap(12))), len(STEPS), backend="host", dtype="float32", **options)
        sim.set_state(**dropped(heap(12), STEPS))
        sim.step(20)
        results.append(np.array(sim.qpos))
        sim.close()
    assert np.isfinite(results[0]).all()
    np.testing.assert_array_equal(results[1], results[0])


def test_memory_to_work_in_grows_in_its_place() -> None:
    """Kernels of large worlds work in it one after another on the GPU; calls made before must find it where it went."""
    issuing = Issuing("serial", "counted", Issue.COUNTED, waits=True)
    store = GroupStore("heap", plan_step(load_table(heap(12)), 3, HostBackend(), "float32", issuing, shards=2))
    assert store.bounds == (0, 1, 3)
    held = store.nbytes()
    small = store.scratch(1, 100)
    assert store.nbytes() - held == small.nbytes == 2 * 100 * 4
    assert store.scratch(1, 60) is small
    assert small.nbytes == 2 * 100 * 4
    before = small.ptr
    assert store.scratch(1, 5000) is small
    assert small.ptr != before
    assert small.nbytes == 2 * 5000 * 4
    assert store.scratch(0, 100) is not small
