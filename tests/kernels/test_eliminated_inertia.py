"""Accelerations without constraints, for which lanes of a GPU eliminate the inertia instead of factoring it."""

from __future__ import annotations

import numpy as np
import pytest

from simengine import Simulation, load_model
from simengine.backends import select
from simengine.zoo import random_robot
from tests.helpers.cuda_on_host.backend import FiberBackend
from tests.models import compile_model


@pytest.mark.parametrize("name", [pytest.param("hopper", marks=pytest.mark.slow), "ant", "robot"])
def test_accelerations_are_those_of_the_factor(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(select._MAKERS, "cuda", FiberBackend)
    found = {}
    for backend in ("host", "cuda"):
        model = load_model(random_robot(7) if name == "robot" else compile_model(name))
        sim = Simulation(model, 3, backend=backend, executor="serial", dtype="float64", keep=("qacc_smooth", "qLD"))
        rng = np.random.default_rng(0)
        sim.set_state(qvel=rng.normal(size=(3, model.nv)), qfrc_applied=rng.normal(size=(3, model.nv)))
        sim.forward()
        found[backend] = [np.asarray(sim.field(field)) for field in ("qacc_smooth", "qLD")]
        calls = [entry.name for entry in sim.schedule.kernel_list]
    assert any("acceleration_unfactored" in call or call.startswith("smooth_unfactored") for call in calls)
    for ours, theirs in zip(found["cuda"], found["host"], strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9 * np.abs(theirs).max())
