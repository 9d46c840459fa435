"""Pairs of geoms that a GPU looks at only where clusters of geoms meet, against all pairs."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.scaling_models import crowded_arm, furnished_room
from simengine import Simulation, check_model, load_model
from simengine.model import clusters
from tests.gpu.compare import cuda_only, state_bits
from tests.stages.test_clusters import room

MODELS = {"furnished room": furnished_room(256), "crowded arm": crowded_arm(64), "room of searches": room()}


@cuda_only
@pytest.mark.parametrize("worlds", [20, 3000])
@pytest.mark.parametrize("name", MODELS)
def test_clusters_change_no_bits(backend: str, monkeypatch: pytest.MonkeyPatch, name: str, worlds: int) -> None:
    found = []
    for executor, fewest in [("serial", 10**9), ("serial", 512), ("graph-cached", 512), ("device", 512)]:
        monkeypatch.setattr(clusters, "FEWEST_CULLED", fewest)
        sim = Simulation(load_model(MODELS[name]), worlds, backend=backend, executor=executor, emission="ahead")
        names = {kernel.name for kernel in sim.schedule.plan().kernels(frozenset())}
        assert any("culled" in each for each in names) == (fewest == 512)
        sim.step(60)
        found.append(state_bits(sim))
        sim.close()
    assert all(one == found[0] for one in found)


@cuda_only
def test_geoms_of_other_sizes_are_found(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each world has boxes of its own size: the boxes of clusters that stand still follow."""
    scales = np.array([0.6, 1.0, 1.4])[:, None, None]
    qpos, found = np.random.default_rng(0).uniform(-0.6, 0.6, (1, 7)).repeat(3, axis=0), []
    for fewest in (10**9, 512):
        monkeypatch.setattr(clusters, "FEWEST_CULLED", fewest)
        model = load_model(furnished_room(256))
        sim = Simulation(model, 3, backend=backend, executor="serial", emission="ahead", on_nonfinite="freeze")
        sim.set_params(geom_size=model.geom_size[None] * scales)
        sim.set_state(qpos=qpos)
        sim.forward()
        near = [len(sim.contacts(world).dist) for world in range(3)]
        sim.step(60)
        found.append((near, state_bits(sim)))
        sim.close()
    assert found[0] == found[1]
    assert found[0][0][0] < found[0][0][2]  # larger boxes are nearer


@cuda_only
def test_a_room_agrees_with_mujoco(backend: str) -> None:
    model = load_model(furnished_room(256))
    report = check_model(model, backend=backend, dtype="float32", num_states=12, num_steps=20)
    assert report.passed, report.verdict()
