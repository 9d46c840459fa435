"""Worlds of many trees on the GPU: islands against MuJoCo, and their bits under every executor."""

from __future__ import annotations

import numpy as np
import pytest

from simengine import Simulation, check_model, load_model
from simengine.zoo import pile_xml
from tests.gpu.compare import cuda_only
from tests.helpers.islands import dropped, every_row, heap, pile, roped, touching_arms

IN_REGISTERS = {f"{number} arms": touching_arms(number) for number in (2, 3)}
MODELS = {
    "heap": heap(20),
    "heap by RK4": heap(20, integrator="RK4"),
    "every row": every_row(roped(heap(12))),
    "3 arms on cones": touching_arms(3, 'cone="elliptic"', 'frictionloss="0.01"'),
    **IN_REGISTERS,
}


@cuda_only
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", MODELS)
def test_islands_agree_with_mujoco(backend: str, name: str, dtype: str) -> None:
    model = load_model(MODELS[name])
    assert model.table.has_islands
    report = check_model(model, backend=backend, dtype=dtype, num_states=40, num_steps=40)
    assert report.passed, report.verdict()


@cuda_only
@pytest.mark.parametrize("name", IN_REGISTERS)
def test_matrices_of_islands_are_in_registers_of_a_warp_or_a_block(backend: str, name: str) -> None:
    sim = Simulation(load_model(IN_REGISTERS[name]), 6, backend=backend)
    sim.step(5)
    form = "_islands_matrix_56_64" if name.startswith("2") else "_islands_block_84_more"
    assert any(entry.call.name.endswith(form) for entry in sim.schedule.kernel_list)


@cuda_only
@pytest.mark.parametrize("name", ["heap", *IN_REGISTERS])
def test_islands_have_the_same_bits_under_every_executor(backend: str, name: str) -> None:
    states = []
    counted, ahead = {"executor": "streams", "emission": "counted"}, {"executor": "streams", "emission": "ahead"}
    for options in ({"executor": "serial"}, counted, {**counted, "shards": 3}, ahead, {"executor": "graph-cached"}):
        sim = Simulation(MODELS[name], 24, backend=backend, **options)
        sim.step(100)
        states.append((sim.qpos.get().tobytes(), sim.qvel.get().tobytes()))
        assert np.isfinite(sim.qpos.get()).all()
    assert len(set(states)) == 1


@cuda_only
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("solver", ["Newton", "PGS"])
def test_large_islands_agree_with_mujoco(backend: str, solver: str, dtype: str) -> None:
    """In worlds of so many dofs that each has a block of threads; MuJoCo's PGS does not converge everywhere."""
    model = load_model(pile("elliptic").replace("<option", f'<option solver="{solver}" tolerance="1e-12"', 1))
    model.table.solve_dense_up_to(8)
    report = check_model(model, backend=backend, dtype=dtype, num_states=20, num_steps=40)
    assert report.passed, report.verdict()


@cuda_only
def test_ten_free_bodies_are_solved_by_islands_and_agree_with_mujoco(backend: str) -> None:
    model = load_model(pile_xml(10, "mixed"))
    sim = Simulation(model, 6, backend=backend)
    sim.step(60)
    assert any(entry.call.name.startswith("solve_newton_unilateral_islands") for entry in sim.schedule.kernel_list)
    report = check_model(model, backend=backend, dtype="float32", num_states=12, num_steps=20)
    assert report.passed, report.verdict()


@cuda_only
def test_one_pile_has_the_bits_of_many(backend: str) -> None:
    states, found = dropped(pile("pyramidal"), (80, 300)), []
    for copies in (1, 40):
        model = load_model(pile("pyramidal"))
        model.table.solve_dense_up_to(64)
        sim = Simulation(model, 2 * copies, backend=backend)
        sim.set_state(**{name: np.tile(values, (copies, 1)) for name, values in states.items()})
        sim.step(50)
        assert any(entry.call.name.startswith("solve_large_islands") for entry in sim.schedule.kernel_list)
        found.append(sim.qpos.get().reshape(copies, 2, -1))
    assert np.isfinite(found[0]).all()
    np.testing.assert_array_equal(found[1], np.tile(found[0], (40, 1, 1)))
