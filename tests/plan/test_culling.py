"""Which kernels list the pairs of models whose geoms are in clusters."""

from __future__ import annotations

import pytest

from benchmarks.scaling_models import crowded_arm, furnished_room
from simengine.backends.host import HostBackend
from simengine.model import ModelTable, load_table
from simengine.model.clusters import LEAST_SAVED, operations
from simengine.plan.issue import decide_issuing
from simengine.plan.scratch import scratch_plan
from simengine.plan.step_plan import plan_step
from tests.emission.test_memory import GpuOnPaper
from tests.helpers.islands import heap
from tests.models import gymnasium_path
from tests.stages.test_clusters import room

COUNT = "only_collision_count"


def names(model: ModelTable, worlds: int, backend: HostBackend, emission: str = "auto") -> list[str]:
    issuing = decide_issuing([model], backend, "auto", emission, {})
    plan = plan_step(model, worlds, backend, "float32", issuing, shards=1)
    return [kernel.name for kernel in plan.kernels(frozenset())]


@pytest.mark.parametrize(
    ("source", "worlds", "listing"),
    [
        (furnished_room(256), 4096, "list_culled_no_hfields_searches"),
        (furnished_room(256), 512, "list_culled_by_block_no_hfields_searches"),
        (crowded_arm(64), 4096, "list_culled_no_hfields_searches"),
        (room(), 4096, "list_culled_no_hfields"),
        (room(), 512, "list_culled_by_block_no_hfields"),
    ],
)
def test_a_gpu_lists_pairs_by_clusters_and_counts_behind(source: str, worlds: int, listing: str) -> None:
    model = load_table(source)
    on_gpu = names(model, worlds, GpuOnPaper())
    assert (listing in on_gpu, COUNT in on_gpu) == (True, True)
    assert any(name.startswith("poses") and "_of_many" in name for name in on_gpu)
    assert any("depth" in name for name in on_gpu) == (model.nsearch > 0)
    assert {"position", "position_general", "position_siteless"}.isdisjoint(on_gpu)
    for other in (names(model, worlds, HostBackend()), names(model, worlds, GpuOnPaper(), "stages")):
        assert not any("culled" in name or "_of_many" in name for name in other)


@pytest.mark.parametrize("source", [str(gymnasium_path("humanoid")), heap(12), furnished_room(16)])
def test_models_of_few_pairs_have_the_kernels_of_others(source: str) -> None:
    model = load_table(source)
    assert model.nmeeting == 0
    assert not any("culled" in name for worlds in (64, 4096) for name in names(model, worlds, GpuOnPaper()))


@pytest.mark.parametrize("geoms", [256, 1024])
def test_clusters_save_most_tests_in_a_room(geoms: int) -> None:
    model = load_table(furnished_room(geoms))
    assert operations(model.mj, model.arrays) < (1 - LEAST_SAVED) * model.ncand
    if geoms == 1024:
        assert operations(model.mj, model.arrays) < model.ncand / 7


def test_shared_memory_does_not_grow_with_the_geoms_of_a_room() -> None:
    gpu, words = GpuOnPaper(), list[int]()
    for geoms in (256, 1024):
        model = load_table(furnished_room(geoms))
        plan = plan_step(model, 4096, gpu, "float32", decide_issuing([model], gpu, "auto", "auto", {}), shards=1)
        poses = next(kernel for kernel in plan.kernels(frozenset()) if kernel.name.startswith("poses"))
        words.append(scratch_plan(poses, model.sizes, 0, gpu).words)
    assert words[0] == words[1] < 1024
