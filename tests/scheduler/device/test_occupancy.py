"""Grids of workers fit on a device together."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simengine_scheduler.device.occupancy import Multiprocessors, Need, joint_grids

SMALL = Multiprocessors(number=2)


@given(
    needs=st.lists(
        st.builds(
            Need, st.sampled_from((32, 128, 256)), st.integers(16, 255), st.integers(0, 60000), st.integers(1, 10**5)
        ),
        min_size=1,
        max_size=3,
    )
)
def test_grids_fit_together(needs: list[Need]) -> None:
    device = Multiprocessors(number=3)
    try:
        grids, shared = joint_grids(needs, device)
    except ValueError:
        return
    blocks = [-(-grid // device.number) for grid in grids]
    for room, of in (
        (device.registers, lambda n: n.threads * n.registers),
        (device.shared, lambda n: n.shared + 1024),
        (device.threads, lambda n: n.threads),
        (device.blocks, lambda n: 1),
    ):
        assert sum(n * of(need) for n, need in zip(blocks, needs, strict=True)) <= room
    assert 0 < shared <= device.shared
    assert all(1 <= grid <= max(1, need.work) for grid, need in zip(grids, needs, strict=True))


def test_warps_find_registers_in_one_partition() -> None:
    """A block of columns takes 3072 registers of each partition, a worker 5376 of one: by sums nine would fit."""
    of_columns, worker = Need(128, 96, 0, 468), Need(32, 168, 0, 2000)
    device = Multiprocessors()
    grids = joint_grids([of_columns, worker, worker, worker], device).blocks
    warps = sum(grid // device.number for grid in grids[1:])
    assert grids[0] == device.number
    assert warps == 8  # 10 240 registers of the 65 536 are left, 2560 in each partition
    assert min(grids[1:]) >= 2 * device.number


def test_one_multiprocessor_gets_fewer_blocks_beside_the_window() -> None:
    device, worker = Multiprocessors(), Need(32, 168, 0, 10**5)
    assert joint_grids([worker], device).blocks == [132 * 12]
    found = joint_grids([worker], device, Need(32, 128, 6000, 1))
    assert found.blocks == [132 * 12 - 1]
    assert found.shared == 1024 * (11 + 7)
    with pytest.raises(ValueError, match="one block of each of 2 resource classes does not fit"):
        joint_grids([Need(1024, 64, 0, 10)], device, Need(32, 64, 0, 1))


def test_the_class_with_more_work_gets_more_blocks() -> None:
    few, many = joint_grids([Need(32, 128, 0, 400), Need(32, 128, 0, 4000)], Multiprocessors()).blocks
    assert few < many
    assert few >= 132
    assert joint_grids([Need(32, 128, 0, 40), Need(32, 128, 0, 4000)], Multiprocessors()).blocks[0] == 40


def test_classes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="one block of each of 2 resource classes does not fit .* lacks .* registers"):
        joint_grids([Need(1024, 64, 0, 10), Need(32, 64, 0, 10)], SMALL)
