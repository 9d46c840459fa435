"""Whole steps of a simulation by workers on a real GPU: fixed lists, lists that wait for counts, groups that pause."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from simengine import Simulation, load_model
from simengine.zoo import pile_xml
from tests.emission.worlds import BALL, ant, ant_start
from tests.gpu.compare import state_bits
from tests.scheduler.device.step import counters_of, state_after

pytestmark = pytest.mark.gpu
WORLDS, STEPS = 64, 5


def test_merged_steps_leave_the_bits_of_serial(cupy: Any) -> None:
    wanted = state_after(WORLDS, STEPS, "serial", {})
    assert state_after(WORLDS, STEPS, "device", {"merged": True}) == wanted
    assert state_after(WORLDS, STEPS, "device", {}) == wanted


def test_checks_are_a_part_of_admission(cupy: Any) -> None:
    for of in counters_of(WORLDS, STEPS, {}):
        assert 0 < of.compare_seconds < of.check_seconds


def bits_after(executor: str, emission: str, drive: Callable[[Simulation], None]) -> list[dict[str, bytes]]:
    """The bits of all groups after ants and balls were driven for a while."""
    groups = [(ant(), WORLDS), (load_model(BALL), 5), (ant(), 7)]
    sim = Simulation(groups, backend="cuda", executor=executor, emission=emission)
    for group in (0, 2):
        start = ant_start(groups[group][1])
        sim.groups[group].set_state(qpos=start.qpos, qvel=start.qvel)
    drive(sim)
    sim.synchronize()
    bits = [state_bits(sim, group) for group in range(len(groups))]
    sim.close()
    return bits


def with_pauses(sim: Simulation) -> None:
    for step in range(12):
        for number, group in enumerate(sim.groups):
            group.paused = (step + number) % 4 == 1
        sim.step()


@pytest.mark.parametrize("emission", ["counted", "ahead"])
@pytest.mark.parametrize("drive", [lambda sim: sim.step(STEPS), with_pauses], ids=["all step", "some pause"])
def test_lists_of_every_kind_leave_the_bits_of_serial(
    cupy: Any, emission: str, drive: Callable[[Simulation], None]
) -> None:
    assert bits_after("device", emission, drive) == bits_after("serial", emission, drive)


def test_piles_by_islands_leave_the_bits_of_serial(cupy: Any) -> None:
    found = []
    for executor in ("serial", "device"):
        sim = Simulation(load_model(pile_xml(24, "mixed")), 8, backend="cuda", executor=executor, emission="counted")
        sim.step(60)
        sim.synchronize()
        found.append(state_bits(sim))
        sim.close()
    assert found[0] == found[1]
