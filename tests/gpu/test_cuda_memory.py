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


def _in_use(sim: Simulation) -> tuple[int, int]:
    """Bytes of the GPU and of pinned memory that this process has in use beside those of a simulation's arrays.

    What a pool holds says less. CuPy keeps pinned copies of uploads until the GPU has read them, and makes others
    meanwhile, so a GPU that other processes use has the pool of pinned memory grow.
    """
    import cupy

    pooled: Any = cupy.cuda.pinned_memory.PooledPinnedMemory
    cupy.cuda.Device().synchronize()
    cupy.cuda.alloc_pinned_memory(1)  # drops copies that have been read
    gc.collect()
    pinned = sum(one.size for one in gc.get_objects() if type(one) is pooled)
    return cupy.get_default_memory_pool().used_bytes() - sim.nbytes(), pinned


@cuda_only
def test_simulations_and_groups_that_end_leave_their_memory_to_others(backend: str) -> None:
    import cupy

    pool: Any = cupy.get_default_memory_pool()
    model = load_model(OWN["two_arms"])
    in_use: list[tuple[int, int]] = []
    totals: list[int] = []
    with Simulation(model, 20, backend=backend) as sim:
        rounded_up = UNIT * (len(FIELDS) + OTHERS) * sim.groups[0].num_shards  # which changes as arenas grow
        for _ in range(8):
            sim.add_group(model, 300)
            sim.step(2)
            with sim.copy() as other:
                other.step(2)
            group = sim.groups[-1].footprint().at_first
            sim.remove_group(sim.groups[-1])
            del other
            in_use.append(_in_use(sim))
            totals.append(pool.total_bytes())
    assert in_use[-1][0] <= in_use[3][0] + rounded_up < in_use[3][0] + group, in_use
    assert in_use[-1][1] <= in_use[3][1], in_use  # fewer if memory of earlier tests ends meanwhile
    # where the free memory lies in pieces, the pool may grow once or twice, but not with each of four groups
    assert totals[-1] < totals[3] + 3 * group, totals


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
