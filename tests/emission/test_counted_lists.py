"""Steps by counts as counted lists that compiled code takes in turns: counts, arenas that grow, and several groups."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simengine import Simulation
from simengine.cli.simulations.workloads import loaded
from simengine.emission.sized import SizedCall, rounded, rounded_alike
from simengine.zoo import pile_xml, random_robot
from simengine_scheduler import make_executor
from simengine_scheduler.core import CountedList
from simengine_scheduler.testing import CalledDevice

GROUPS: dict[str, Any] = {
    "one robot": lambda: [(loaded("ant"), 4)],
    "several": lambda: [(random_robot(seed), 3) for seed in range(3)] + [(loaded("grasp"), 2)],
    "piles": lambda: [(pile_xml(6, "mixed"), 2), (pile_xml(12, "box"), 1)],
}


def state(sim: Simulation) -> list[bytes]:
    return [group.to_host(group.qpos).tobytes() + group.to_host(group.qvel).tobytes() for group in sim.groups]


@pytest.mark.parametrize(
    ("emission", "groups"),
    [
        *(("counted", groups) for groups in GROUPS),
        ("stages", "one robot"),
        *(pytest.param("stages", groups, marks=pytest.mark.slow) for groups in GROUPS if groups != "one robot"),
    ],
)
@pytest.mark.parametrize(("name", "completion"), [("serial", "events"), ("streams", "events"), ("streams", "polling")])
def test_compiled_code_makes_the_steps_of_serial(groups: str, emission: str, name: str, completion: str) -> None:
    """Launches on the host are made by Python when compiled code comes to them, so that each step is a real one."""
    sims = [Simulation(GROUPS[groups](), backend="host", executor="serial", emission=emission) for _ in range(2)]
    options: dict[str, Any] = {"driver": CalledDevice(1), "stream": 0, "device": "cuda", "completion": completion}
    with make_executor(name, segments=sims[1].schedule.segments, **options) as executor:
        assert all(type(emitter) is CountedList for emitter in sims[1].schedule.emitters())
        for step in range(15):
            for sim in sims:
                sim.pause([step % 5 == index + 1 for index in range(len(sim.groups))])
                for group in sim.groups:
                    group.ctrl[:] = np.sin(step + np.arange(group.model.nu))
            sims[0].step()
            trace = sims[1].schedule.run(executor)
            assert trace.counters.calls == len(sims[1].schedule.kernel_list)
            assert trace.counters.awaits >= len(sims[1].schedule.emitters())
    assert state(sims[0]) == state(sims[1])
    for sim in sims:
        sim.close()


@pytest.mark.parametrize(("name", "runs"), [("serial", 1), ("streams", 1), ("streams", 2)])
def test_several_steps_are_one_list(name: str, runs: int) -> None:
    """Groups do not wait for each other between the steps of a run. `streams` makes eight steps in a run."""
    sims = [Simulation(GROUPS["several"](), backend="host", executor="serial", emission="counted") for _ in range(2)]
    n = 3 if runs == 1 else 11
    single: list[list[str]] = []
    with make_executor(
        name, segments=sims[1].schedule.segments, driver=CalledDevice(1), stream=0, device="cuda"
    ) as executor:
        for _ in range(2):
            for _ in range(n):
                sims[0].step()
            trace = sims[1].schedule.run(executor, n)
            single = [[call.name for call in sim.schedule.kernel_list] for sim in sims]
            assert trace.counters.calls > 2 * len(single[1])
    assert state(sims[0]) == state(sims[1])
    assert single[0] == single[1], "the log has the calls of the last step"
    for sim in sims:
        sim.close()


@pytest.mark.parametrize("groups", ["several", "piles"])
def test_a_launch_covers_all_that_was_counted(groups: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also islands and slices, of which there are more than worlds. On a GPU, what a launch leaves out is not done."""
    of_units, counted, asked = SizedCall.sized, SizedCall.counted, [0]

    def note(call: SizedCall, units: int) -> Any:
        asked[0] = units
        return of_units(call, units)

    seen: list[tuple[int, int]] = []

    def check(call: SizedCall, units: int) -> Any:
        found = counted(call, units)
        seen.append((units, asked[0]))
        return found

    monkeypatch.setattr(SizedCall, "sized", note)
    monkeypatch.setattr(SizedCall, "counted", check)
    sim = Simulation(GROUPS[groups](), backend="host", executor="serial", emission="counted")
    for _ in range(20):
        sim.step(8)
    assert [pair for pair in seen if pair[0] > pair[1]] == []
    assert max(units for units, _ in seen) > (3 if groups == "piles" else 1), "islands and slices come in numbers"
    sim.close()


def test_counts_that_are_close_have_the_same_call() -> None:
    """So an executor that keeps graphs of calls meets few of them, and never one for fewer worlds than counted."""
    few = [rounded(units, 100) for units in range(1, 101)]
    assert all(units <= up <= 100 for units, up in enumerate(few, 1))
    assert sorted(set(few)) == [1, 2, 4, 8, 16, 32, 64, 100]
    assert sorted({rounded(units, 100, 64) for units in range(1, 101)}) == [64, 100]
    assert rounded(1, 20, 64) == 20
    large = [rounded(units, None) for units in range(513, 100_000)]
    assert all(units <= up < 1.25 * units for units, up in enumerate(large, 513))
    assert len(set(large)) < 40


@pytest.mark.parametrize("least", [1, 64])
def test_all_counts_that_have_the_same_call_are_told_at_once(least: int) -> None:
    sizes = {units: rounded(units, None, least) for units in range(1, 5000)}
    for units, up in sizes.items():
        alike = rounded_alike(units, least)
        assert units in alike
        assert [sizes.get(other, up) for other in alike] == [up] * len(alike)
        assert sizes.get(alike.start - 1) != up != rounded(alike.stop, None, least)
