"""Limits of a multiprocessor and waves, against hand-made cases."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from simengine_scheduler import make_executor
from simengine_scheduler.core import Cost
from simengine_scheduler.gpu_model import GPUS, GpuSpec, HostSpec, LaunchShape, gpu_named
from tests.scheduler.gpu_model.machines import machine, shaped


@pytest.mark.parametrize(
    ("shape", "held"),
    [
        (LaunchShape(1, 256, 16, 0), 4),  # 1024 threads
        (LaunchShape(1, 33, 16, 0), 8),  # 8 blocks: two warps each are only 512 threads
        (LaunchShape(1, 256, 128, 0), 2),  # 65536 registers: 32768 a block
        (LaunchShape(1, 32, 33, 0), 8),  # registers come in portions of 256 a warp
        (LaunchShape(1, 32, 16, 15 * 1024), 4),  # 64 KiB: 16 KiB a block with what is reserved
        (LaunchShape(1, 2048, 16, 0), 0),
    ],
)
def test_occupancy_is_what_the_scarcest_resource_allows(shape: LaunchShape, held: int) -> None:
    assert machine().occupancy(shape) == held


@pytest.mark.parametrize(("blocks", "waves"), [(1, 1), (16, 1), (17, 2), (32, 2), (33, 3)])
def test_waves_and_the_duration_of_a_block(blocks: int, waves: int) -> None:
    gpu, shape = machine(), shaped(blocks)
    assert gpu.waves(shape) == waves
    assert gpu.block_seconds(shape, 6e-6) == pytest.approx(6e-6 / waves)


def test_durations_are_translated_from_the_gpu_they_were_taken_on() -> None:
    small = machine()
    large = replace(small, multiprocessors=8, reference=small, speed=2.0)
    assert large.waves(shaped(32)) == 1
    assert large.block_seconds(shaped(32), 6e-6) == pytest.approx(6e-6 / 2 / 2)


def test_a_block_too_large_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="does not fit a multiprocessor of 'test'"):
        machine().waves(shaped(threads=2048))


@pytest.mark.parametrize(
    "change",
    [
        {"multiprocessors": 0},
        {"speed": 0.0},
        {"worker": 0.0},
        {"admit": -1e-6},
        {"chain": -1e-6},
        {"visible": float("nan")},
        {"blocks": -1},
    ],
)
def test_machines_that_cannot_be_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"GPU 'test' has {next(iter(change))}="):
        machine(**change)


def test_costs_of_the_host_are_checked_too() -> None:
    with pytest.raises(ValueError, match=r"host\.launch=-1"):
        GpuSpec("odd", multiprocessors=1, host=HostSpec(launch=-1.0))


def test_a_duration_from_cost_hints() -> None:
    gpu = machine(flops=1e9, bandwidth=1e6, shortest=1e-6)
    assert gpu.estimate(Cost()) == 1e-6
    assert gpu.estimate(Cost(flops=1e6)) == pytest.approx(1e-3)
    assert gpu.estimate(Cost(flops=1e6, bytes=1e6)) == pytest.approx(1.0)


def test_gpus_by_name() -> None:
    assert gpu_named("h200") is GPUS["h200"]
    mine = machine()
    assert gpu_named(mine) is mine
    with pytest.raises(ValueError, match="unknown GPU 'h900'; choose one of h100, h200, "):
        make_executor("simulated", segments=None, gpu="h900")
