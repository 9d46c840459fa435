"""Worlds of many trees on the GPU: islands against MuJoCo, and their bits under every executor."""

from __future__ import annotations

import numpy as np
import pytest

from simengine import Simulation, check_model, load_model
from tests.gpu.compare import cuda_only
from tests.islands import every_row, heap, roped

MODELS = {"heap": heap(20), "heap by RK4": heap(20, integrator="RK4"), "every row": every_row(roped(heap(12)))}


@cuda_only
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", MODELS)
def test_islands_agree_with_mujoco(backend: str, name: str, dtype: str) -> None:
    model = load_model(MODELS[name])
    assert model.has_islands
    report = check_model(model, backend=backend, dtype=dtype, num_states=40, num_steps=40)
    assert report.passed, report.verdict()


@cuda_only
def test_islands_have_the_same_bits_under_every_executor(backend: str) -> None:
    states = []
    for options in ({"executor": "serial"}, {"executor": "streams", "shards": 1}, {"executor": "streams", "shards": 3}):
        sim = Simulation(MODELS["heap"], 24, backend=backend, **options)
        sim.step(100)
        states.append((sim.qpos.get().tobytes(), sim.qvel.get().tobytes()))
        assert np.isfinite(sim.qpos.get()).all()
    assert len(set(states)) == 1
