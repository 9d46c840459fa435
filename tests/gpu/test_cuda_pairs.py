"""Pairs of geoms found anew in every step, on the GPU: against MuJoCo, and against the table of candidates."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from simengine import Model, Simulation, check_model, load_model
from simengine.zoo import pile_xml
from tests.gpu.compare import cuda_only
from tests.helpers.medley import medley
from tests.physics.collision.test_found_pairs import assert_same_contacts, dropped, evaluated, forced, heap


@cuda_only
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_piles_agree_with_mujoco(backend: str, dtype: str) -> None:
    model = load_model(pile_xml(66, "capsule"))
    assert model.table.finds_pairs
    report = check_model(model, backend=backend, dtype=dtype, num_states=20, num_steps=20)
    assert report.passed, report.verdict()


@cuda_only
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_contacts_are_those_of_the_table(backend: str, dtype: str) -> None:
    mj, start = mujoco.MjModel.from_xml_string(medley()), dropped(medley(), (0, 30, 120))
    sims = [evaluated(forced(mj, found), start, dtype, backend) for found in (True, False)]
    assert assert_same_contacts(sims, exact=dtype == "float64") > 100


@cuda_only
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_one_heap_has_the_contacts_of_many_and_of_mujoco(backend: str, dtype: str) -> None:
    model, state = heap()
    data = mujoco.MjData(model.mj)
    data.qpos, data.qvel = state["qpos"], state["qvel"]
    mujoco.mj_forward(model.mj, data)
    for worlds in (1, 33):
        sim = evaluated(model, {name: np.tile(value, (worlds, 1)) for name, value in state.items()}, dtype, backend)
        for world in {0, worlds - 1}:
            ours = sim.contacts(world)
            np.testing.assert_array_equal(np.stack([ours.geom1, ours.geom2], axis=1), data.contact.geom.reshape(-1, 2))
            np.testing.assert_allclose(ours.dist, data.contact.dist, rtol=0, atol=1e-12 if dtype == "float64" else 1e-5)


@cuda_only
def test_every_executor_gives_the_same_bits(backend: str) -> None:
    model, state = heap()
    found = []
    for options in ({"executor": "serial"}, {"executor": "streams", "shards": 1}, {"executor": "streams", "shards": 3}):
        sim = Simulation(Model(model), 6, backend=backend, **options)
        sim.set_state(**state)
        sim.step(30)
        found.append(sim.qpos.get().tobytes())
        assert np.isfinite(sim.qpos.get()).all()
    assert len(set(found)) == 1
