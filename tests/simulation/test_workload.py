"""Simulations as workloads: a caller's executors repeat the same steps with the same bits."""

from __future__ import annotations

import numpy as np
import pytest

from simengine import BackendError, NonFiniteError, Simulation, load_model
from simengine.workload import CONTROL_SETS, SimulationWorkload
from simengine_scheduler import AwaitCounts, FixedList, make_executor, validate
from tests.emission.worlds import BALL, host

FREE = "<mujoco><worldbody><body><freejoint/><geom size='0.1'/></body></worldbody></mujoco>"
EXECUTORS = ("serial", "shuffled", "threads")


def ball(emission: str = "counted", shards: int = 2) -> SimulationWorkload:
    sim = host(BALL, 5, executor="serial", shards=shards, emission=emission)
    return SimulationWorkload("ball", sim, settle=12)


@pytest.mark.parametrize("emission", ["counted", "ahead", "whole"])
def test_executors_leave_the_bits_of_serial(emission: str) -> None:
    workload = ball(emission)
    states = []
    for name in (*EXECUTORS, "serial"):
        workload.reset()
        executor = make_executor(name, segments=workload.segments, record="order", workers=2)
        for _ in range(3):
            trace = workload.run(executor, 7)
            assert trace.executor == name
            assert validate(trace.order, trace, workload.segments) == []
        states.append(workload.state())
        executor.close()
    assert len(set(states)) == 1
    workload.reset()
    assert workload.state() != states[0]
    workload.close()


def test_runs_of_any_length_join_up() -> None:
    workload, executor = ball(), make_executor("serial")
    workload.run(executor, 2 * CONTROL_SETS + 3)
    at_once = workload.state()
    workload.reset()
    for steps in (4, 1, CONTROL_SETS + 1, 7):
        workload.run(executor, steps)
    assert workload.state() == at_once
    workload.close()


def test_worlds_that_were_stopped_go_on_after_a_reset() -> None:
    """So that an executor which ran into a bad state changes nothing for those that come after it."""
    workload, executor = ball(), make_executor("serial")
    workload.run(executor, 7)
    expected = workload.state()
    workload.sim.groups[0].set_state(worlds=[1, 3], qvel=[1e12, 0, 0])
    with pytest.raises(NonFiniteError):
        workload.run(executor, 7)
    workload.reset()
    workload.run(executor, 7)
    assert workload.state() == expected
    workload.close()


def test_worlds_differ_and_follow_the_seed() -> None:
    workload = ball()
    qpos = workload.sim.qpos
    assert len(np.unique(qpos[:, 0])) == 5
    assert ball().state() == workload.state()


def test_several_groups_with_and_without_actuators() -> None:
    sim = Simulation([(load_model(BALL), 2), (load_model(FREE), 3)], backend="host", executor="serial")
    workload = SimulationWorkload("two", sim, settle=1)
    assert workload.units == 5
    before = workload.state()
    workload.run(make_executor("serial"), 2)
    assert workload.state() != before
    workload.close()


def test_lists_to_look_at() -> None:
    counted, ahead = ball("counted"), ball("ahead")
    assert len(counted.emitters()) == len(ahead.emitters()) == 2
    assert all(isinstance(emitter, FixedList) for emitter in ahead.emitters())
    items = list(counted.emitters()[0])
    assert any(isinstance(item, AwaitCounts) for item in items)


def test_an_executor_of_the_callers_steps_a_simulation() -> None:
    sims = [host(BALL, 3, executor="serial", keep=("qacc",)) for _ in range(2)]
    executor = make_executor("shuffled", **sims[0].schedule.options, record="order")
    ctrl = np.ones((4, 3, 2))
    trace = sims[0].schedule.run(executor, 4, ctrl)
    sims[1].step(4, ctrl)
    assert len(trace.order) == len(sims[0].schedule.kernel_list)
    for name in ("qpos", "qvel", "qacc"):
        assert np.array_equal(sims[0].field(name), sims[1].field(name))
    with pytest.raises(ValueError, match="step"):
        sims[0].schedule.run(executor, 0)


def test_jax_has_no_lists() -> None:
    sim = Simulation(BALL, 1, backend="jax")
    for use in (
        lambda: sim.schedule.segments,
        lambda: sim.schedule.options,
        sim.schedule.emitters,
        lambda: sim.schedule.run(make_executor("serial")),
    ):
        with pytest.raises(BackendError, match="backend 'jax' runs no kernel list"):
            use()
    with pytest.raises(BackendError, match="backend 'jax' runs no kernel list"):
        SimulationWorkload("none", sim)
