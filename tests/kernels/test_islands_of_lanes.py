"""Islands that the lanes of a warp of CUDA's kernels find and measure, against those that a single lane finds."""

from __future__ import annotations

import pytest

from simengine.model import load_table
from simengine.physics.islands.islands import ISLANDS
from tests.helpers.cuda_on_host.program import SCHEDULES, Schedule
from tests.helpers.cuda_on_host.resident import FiberResident
from tests.helpers.islands import chain, dropped, heap, prepared
from tests.stages.harness import call, changed

TOWER = heap(12, clump=11, rise=0.15)
STEPS = (0, 60)
"""A tower, and what has fallen of it."""


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_lanes_find_and_measure_the_islands_that_a_single_lane_finds(schedule: Schedule) -> None:
    memory = prepared(load_table(TOWER), "float32", dropped(TOWER, STEPS))
    for kernel, slots in chain(memory):
        if kernel.name == "only_islands":
            break
        call(kernel, memory, slots)
    away = FiberResident(memory.copy(), schedule)
    call(kernel, memory, slots)
    away.call(kernel, slots, worlds_a_block=1)
    away.fetch()
    assert memory.own("nisland").max() > 1
    for name in set(ISLANDS.writes) - {"block_label"}:
        assert not changed(memory.own(name), away.memory.own(name)).any(), name
