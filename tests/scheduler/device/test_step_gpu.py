"""Whole steps of a simulation by workers of one class, on a real GPU."""

from __future__ import annotations

from typing import Any

import pytest

from tests.scheduler.device.step import counters_of, state_after

pytestmark = pytest.mark.gpu
WORLDS, STEPS = 64, 5


def test_merged_steps_leave_the_bits_of_serial(cupy: Any) -> None:
    wanted = state_after(WORLDS, STEPS, "serial", {})
    for hazards in ("host", "device"):
        for merged in (True, False):
            assert state_after(WORLDS, STEPS, "device", {"merged": merged, "hazards": hazards}) == wanted


def test_checks_are_a_part_of_admission(cupy: Any) -> None:
    for of in counters_of(WORLDS, STEPS, {"hazards": "device"}):
        assert 0 < of.compare_seconds < of.check_seconds
