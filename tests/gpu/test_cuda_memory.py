"""`Group.footprint` predicts the GPU memory that worlds take, and a GPU that has no more of it is no disaster."""

from __future__ import annotations

import gc
import time
from typing import Any

import pytest

from benchmarks.faults.on_gpu import end_memory
from simengine import Simulation, load_model
from simengine.emission import store
from simengine.errors import BackendError
from simengine.state.fields import FIELDS
from tests.gpu.compare import cuda_only
from tests.helpers.islands import heap
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


@cuda_only
@pytest.mark.parametrize(
    ("name", "worlds", "emission", "executor"),
    [
        ("two_arms", 300, "counted", "serial"),
        ("two_arms", 300, "counted", "streams"),
        ("two_arms", 3000, "ahead", "graph-cached"),
        ("two_arms", 300, "whole", "graph-cached"),
        ("large", 40, "counted", "streams"),
    ],
)
def test_a_step_without_memory_leaves_the_simulation_usable(
    backend: str, name: str, worlds: int, emission: str, executor: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory ends at each of several sizes while arenas grow from one entry; then there is memory again."""
    model = load_model(heap(45) if name == "large" else OWN[name])
    monkeypatch.setattr(store, "first_entries", lambda *_: 1)

    def made() -> Simulation:
        return Simulation(model, worlds, backend=backend, executor=executor, emission=emission)

    told = list(end_memory(made, 4, [1 << 12, 1 << 16, 1 << 18, 1 << 20, 1 << 22]))
    assert all(each["same"] for each in told), told
    said = [each["said"] for each in told if each["said"]]
    assert said
    assert all("memory" in sentence.lower() for sentence in said), said


@cuda_only
def test_simulations_and_groups_that_end_leave_their_memory_to_others(backend: str) -> None:
    import cupy

    pool: Any = cupy.get_default_memory_pool()
    live: Any = cupy.cuda.pinned_memory.PinnedMemory
    model = load_model(OWN["two_arms"])
    held: list[tuple[int, int]] = []
    with Simulation(model, 20, backend=backend) as sim:
        for _ in range(8):
            sim.add_group(model, 300)
            sim.step(2)
            with sim.copy() as other:
                other.step(2)
            sim.remove_group(sim.groups[-1])
            del other
            gc.collect()
            held.append((pool.total_bytes(), sum(type(one) is live for one in gc.get_objects())))
    before, after = held[3], held[-1]
    assert after[0] <= before[0], held
    assert after[1] <= before[1], held  # fewer if memory of earlier tests ends meanwhile


@cuda_only
@pytest.mark.parametrize("worlds", [10**9, 10**12, 10**18])
def test_worlds_beyond_all_memory_are_refused_at_once(backend: str, worlds: int) -> None:
    Simulation("ant", 1, backend=backend).close()  # compiled
    began = time.perf_counter()
    with pytest.raises(
        BackendError, match=rf"{worlds} worlds of model 'ant' take at least .* GiB free; use fewer worlds"
    ):
        Simulation("ant", worlds, backend=backend)
    with Simulation("ant", 1, backend=backend) as sim, pytest.raises(BackendError, match="use fewer worlds"):
        sim.add_group("ant", worlds)
    assert time.perf_counter() - began < 5
