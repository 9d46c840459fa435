"""Pairs of geoms that a GPU looks at only where clusters of geoms meet, against all pairs."""

from __future__ import annotations

import pytest

from benchmarks.scaling_models import crowded_arm, furnished_room
from simengine import Simulation, check_model, load_model
from simengine.model import clusters
from tests.gpu.compare import cuda_only, state_bits, to_host
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
def test_geoms_of_other_sizes_are_found(backend: str) -> None:
    """Each world has walls of its own size: the boxes of clusters that stand still follow."""
    model, found = load_model(furnished_room(256)), []
    sizes = model.geom_size[None] * [[[0.6]], [[1.0]], [[2.0]]]
    for worlds in ([0, 1, 2], [2]):
        sim = Simulation(model, len(worlds), backend=backend, executor="serial", emission="ahead")
        sim.set_params(geom_size=sizes[worlds])
        sim.step(200)
        found.append(to_host(sim.groups[0].field("qpos"))[-1])
        sim.close()
    assert (found[0] == found[1]).all()
    report = check_model(model, backend=backend, dtype="float32", num_states=12, num_steps=20)
    assert report.passed, report.verdict()
