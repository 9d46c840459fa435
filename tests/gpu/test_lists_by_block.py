"""Forms of the search for contacts in small shards on a GPU, which have the bits of those in large ones."""

from __future__ import annotations

import pytest

from simengine import Simulation, load_model
from simengine.plan import contact_kernels, step_plan
from tests.gpu.compare import cuda_only, state_bits
from tests.models import OWN


@cuda_only
def test_a_block_lists_the_pairs_that_a_warp_lists(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for executor, fewest in [("serial", 10**9), ("serial", 1), ("graph-cached", 1), ("device", 1)]:
        monkeypatch.setattr(step_plan, "FEWEST_PAIRS_OF_A_BLOCK", fewest)
        sim = Simulation(load_model(OWN["rubble"]), 20, backend=backend, executor=executor)
        names = {kernel.name for kernel in sim.schedule.plan().kernels(frozenset())}
        assert any(name.startswith("list_by_block") for name in names) == (fewest == 1)
        sim.step(60)
        found.append(state_bits(sim))
        sim.close()
    assert all(one == found[0] for one in found)


@cuda_only
def test_searches_of_more_lanes_find_the_same(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for distance, depth, touch in (
        (contact_kernels.DISTANCE_IN_EIGHT, contact_kernels.DEPTH_BY_WARP, contact_kernels.TOUCH_IN_EIGHT),
        contact_kernels.SEARCHES[1:4],
    ):
        monkeypatch.setattr(contact_kernels, "DISTANCE_IN_EIGHT", distance)
        monkeypatch.setattr(contact_kernels, "DEPTH_BY_WARP", depth)
        monkeypatch.setattr(contact_kernels, "TOUCH_IN_EIGHT", touch)
        sim = Simulation(load_model(OWN["rubble"]), 20, backend=backend)
        assert {distance, depth, touch} <= set(sim.schedule.plan().kernels(frozenset()))
        sim.step(60)
        found.append(state_bits(sim))
        sim.close()
    assert found[0] == found[1]
