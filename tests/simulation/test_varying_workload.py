"""Groups that pause, and groups that are born and die, as workloads: the same steps and bits under every executor."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simengine import Simulation, load_model
from simengine.cli.simulations.workloads import make_workload
from simengine.varying_workload import AsynchronousWorkload, GenerationsWorkload, absent
from simengine.zoo import random_robot
from simengine_scheduler import make_executor, validate
from simengine_scheduler.study.specs import Spec

ROBOTS = [load_model(random_robot(seed)) for seed in range(4)]


def simulation(emission: str, models: int = 3) -> Simulation:
    groups = [(model, 2) for model in ROBOTS[:models]]
    return Simulation(groups, backend="host", executor="serial", emission=emission)


def asynchronous(emission: str, **options: Any) -> AsynchronousWorkload:
    return AsynchronousWorkload("robots", simulation(emission), settle=3, **options)


def generations(emission: str) -> GenerationsWorkload:
    return GenerationsWorkload("robots", simulation(emission), ROBOTS[2:], every=2)


def after(workload: Any, name: str, steps: int, **options: Any) -> bytes:
    workload.reset()
    with make_executor(name, segments=workload.segments, record="order", **options) as executor:
        for _ in range(steps):
            trace = workload.run(executor, 1)
            assert validate(trace.order, trace, workload.segments) == []
    state: bytes = workload.state()
    return state


@pytest.mark.parametrize("emission", ["counted", "ahead", "whole"])
@pytest.mark.parametrize("make", [asynchronous, generations])
def test_executors_leave_the_bits_of_serial(make: Any, emission: str) -> None:
    workload = make(emission)
    expected = after(workload, "serial", 9)
    assert after(workload, "serial", 8) != expected
    assert after(workload, "threads", 9, workers=2) == expected
    assert after(workload, "shuffled", 9, seed=1) == expected
    other = make(emission)
    assert after(other, "serial", 9) == expected
    workload.close()
    other.close()


def test_groups_step_at_three_rates_and_end_early() -> None:
    rows = np.array(absent(12, 0))
    assert rows.shape == (200, 12)
    assert not rows.all(axis=1).any()
    steps = np.arange(200)
    for group, rate in enumerate((1, 2, 4) * 4):
        took_part = steps[~rows[:, group]]
        assert group == 0 or not ((took_part + group) % rate).any()  # the first stands in where no group is due
        assert 200 / rate * 0.3 < len(took_part) < 200 / rate
    some = [epoch[-5:].all(axis=0) for epoch in rows.reshape(5, 40, 12)]  # those that ended before the last five steps
    assert 0 < np.mean(some) < 1
    assert absent(12, 1) != absent(12, 0)


def test_a_step_has_the_groups_that_are_due() -> None:
    workload = asynchronous("ahead")
    rows = absent(3, 0)
    executor = make_executor("serial", segments=workload.segments, record="order")
    for row in rows[:12]:
        trace = workload.run(executor, 1)
        assert {call.tag.groups[0] for call in trace.order} == {group for group, out in enumerate(row) if not out}
    fixed = asynchronous("ahead", form="fixed")
    executor = make_executor("serial", record="order")
    for _ in range(5):
        assert {call.tag.groups[0] for call in fixed.run(executor, 1).order} == {0, 1, 2}
    with pytest.raises(ValueError, match="unknown form 'other'"):
        asynchronous("ahead", form="other")


def test_the_oldest_dies_and_another_is_born() -> None:
    workload = generations("ahead")
    executor = make_executor("serial")
    models = []
    for _ in range(6):
        workload.run(executor, 1)
        models.append([ROBOTS.index(group.model) for group in workload.sim.groups])
    assert models == [[0, 1, 2], [1, 2, 2], [1, 2, 2], [2, 2, 3], [2, 2, 3], [2, 3, 2]]
    workload.reset()
    assert [group.model for group in workload.sim.groups] == ROBOTS[:3]


@pytest.mark.parametrize(
    ("spec", "groups"),
    [
        ("asynchronous:count=3,worlds=2,settle=1,emission=ahead,form=fixed", 3),
        ("generations:count=4,worlds=1,settle=0,every=1", 4),
        ("robots:count=2,worlds=2,settle=0", 2),
        ("clutter:worlds=1,settle=0", 4),
    ],
)
def test_workloads_by_name(spec: str, groups: int) -> None:
    workload: Any = make_workload(Spec.parse(spec), "host")
    assert len(workload.sim.groups) == groups
    workload.run(make_executor("serial"), 2)
    workload.close()
