"""`Group.footprint` predicts the GPU memory that worlds take."""

from __future__ import annotations

import gc
from typing import Any

import pytest

from simengine import Simulation, load_model
from simengine.state.fields import FIELDS
from tests.gpu.compare import cuda_only
from tests.islands import heap
from tests.models import OWN

UNIT = 512  # bytes of which CuPy's pool makes its blocks
OTHERS = 4  # arrays that hold no field: two tables of the model, and memory to work in

CASES = [("two_arms", 300, "ahead"), ("two_arms", 3000, "ahead"), ("dual", 40, "counted"), ("large", 20, "counted")]


@cuda_only
@pytest.mark.parametrize(("name", "worlds", "emission"), CASES)
def test_the_pool_grows_by_the_footprint(backend: str, name: str, worlds: int, emission: str) -> None:
    import cupy

    pool: Any = cupy.get_default_memory_pool()
    model = load_model(heap(45) if name == "large" else OWN[name])
    gc.collect()
    before = pool.used_bytes()
    executor = "serial" if emission == "counted" else "auto"
    sim = Simulation(model, worlds, backend=backend, executor=executor, emission=emission)
    sim.step(2)
    sim.synchronize()
    gc.collect()
    needs = sim.groups[0].footprint()
    assert (needs.scratch > 0) == (name == "large")
    grown = sim.nbytes() - needs.at_first
    assert grown >= 0
    # what has not grown is there to the byte; the pool rounds every array up: a field has one, or one for each shard
    arrays = (len(FIELDS) + OTHERS) * sim.groups[0].num_shards
    held = pool.used_bytes() - before
    assert sim.nbytes() <= held <= sim.nbytes() + UNIT * arrays
