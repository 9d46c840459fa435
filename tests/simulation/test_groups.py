"""Groups of one simulation are added, removed, paused and reset while other groups step on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simengine import BackendError, Simulation, UnsupportedModelError
from simengine.backends.host import HostBackend
from simengine.group import Group
from simengine.zoo import random_robot
from simengine_scheduler import make_executor
from tests.model.features import model_with
from tests.models import OWN

ROBOTS = [random_robot(seed) for seed in range(3)]
PENDULUM = "<mujoco><worldbody><body><joint axis='0 1 0'/><geom size='.1' pos='0 0 -1'/></body></worldbody></mujoco>"


def batch(**options: object) -> Simulation:
    return Simulation([(ROBOTS[0], 3), (ROBOTS[1], 2)], **{"backend": "host", **options})  # type: ignore[arg-type]


def state(group: Group) -> tuple[bytes, ...]:
    """Bits of a group's state."""
    return tuple(group.to_host(group.field(name)).tobytes() for name in ("qpos", "qvel", "qacc_warmstart", "nstep"))


def alone(text: str, worlds: int, steps: int) -> tuple[bytes, ...]:
    """State of a model stepped by itself."""
    sim = Simulation(text, worlds, backend="host")
    if steps:
        sim.step(steps)
    return state(sim.groups[0])


@pytest.mark.parametrize("executor", ["serial", "shuffled", "threads"])
def test_groups_come_and_go_while_the_others_go_on(executor: str) -> None:
    """Every group is bit for bit as if it had been alone, whenever it came."""
    sim = batch(executor=executor)
    first, second = sim.groups
    sim.step(10)
    third = sim.add_group(ROBOTS[2], 4)
    assert sim.groups == (first, second, third)
    assert sim.num_worlds == 9
    sim.step(5)
    sim.remove_group(second)
    assert sim.groups == (first, third)
    sim.step(7)
    fourth = sim.add_group(ROBOTS[1], 2)
    sim.step(3)
    assert state(first) == alone(ROBOTS[0], 3, 25)
    assert state(third) == alone(ROBOTS[2], 4, 15)
    assert state(fourth) == alone(ROBOTS[1], 2, 3)
    assert len({group.index for group in (first, second, third, fourth)}) == 4


def test_a_paused_group_stays_and_the_others_go_on() -> None:
    sim = batch(keep=("qacc",))
    first, second = sim.groups
    sim.step(4)
    second.paused = True
    kept = second.field("qacc").tobytes()
    sim.step(6)
    assert second.paused
    assert not first.paused
    assert {call.call.tag.groups for call in sim.schedule.kernel_list} == {(first.index,)}
    assert state(first) == alone(ROBOTS[0], 3, 10)
    assert state(second) == alone(ROBOTS[1], 2, 4)
    assert second.field("qacc").tobytes() == kept
    second.paused = False
    sim.step(2)
    assert state(second) == alone(ROBOTS[1], 2, 6)


@pytest.mark.parametrize("as_array", [False, True])
def test_all_groups_are_told_at_once_whether_they_pause(as_array: bool) -> None:
    sim = batch()
    first, second = sim.groups
    sim.step(4)
    for row in ([False, True], [True, False], [False, False]):
        sim.pause(np.array(row) if as_array else row)
        assert [group.paused for group in sim.groups] == row
        sim.step(3)
    assert state(first) == alone(ROBOTS[0], 3, 10)
    assert state(second) == alone(ROBOTS[1], 2, 10)
    with pytest.raises(ValueError, match="got 1 values and there are 2 groups"):
        sim.pause([True])


@pytest.mark.parametrize(("executor", "stays"), [("serial", True), ("auto", False)])
def test_the_executor_stays_when_groups_come_and_go(executor: str, stays: bool) -> None:
    sim = Simulation([(ROBOTS[0], 3), (ROBOTS[1], 2)], backend="host", executor=executor)
    sim.step(2)
    engine: Any = sim._batch.engine
    before = engine.executor
    first = sim.groups[0]
    sim.add_group(ROBOTS[2], 4)
    sim.step(2)
    assert (engine.executor is before) is stays
    sim.remove_group(sim.groups[1])
    sim.step(2)
    assert state(first) == alone(ROBOTS[0], 3, 6)


def test_stepping_nothing_is_nothing() -> None:
    sim = batch()
    for group in sim.groups:
        group.paused = True
    sim.step(3)
    assert sim.schedule.kernel_list == []
    assert all(group.time.tolist() == [0] * group.num_worlds for group in sim.groups)


def test_a_group_is_reset_while_the_others_go_on() -> None:
    sim = batch()
    first, second = sim.groups
    sim.step(4)
    second.reset()
    sim.step(6)
    assert state(first) == alone(ROBOTS[0], 3, 10)
    assert state(second) == alone(ROBOTS[1], 2, 6)


def test_models_may_differ_in_time_step_and_integrator() -> None:
    sim = Simulation([(PENDULUM, 1), (OWN["two_arms"], 2), (OWN["pile"], 1)], backend="host")
    assert len({(g.model.table.opt_timestep.item(), g.model.table.opt_integrator) for g in sim.groups}) > 1
    sim.step(8)
    for group, text in zip(sim.groups, (PENDULUM, OWN["two_arms"], OWN["pile"]), strict=True):
        assert state(group) == alone(text, group.num_worlds, 8)


def test_a_model_that_cannot_come_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    sim = batch()
    sim.step(2)
    with pytest.raises(UnsupportedModelError):
        sim.add_group(model_with("sleep"), 2)
    with pytest.raises(ValueError, match="give a positive integer"):
        sim.add_group(PENDULUM, 0)
    with monkeypatch.context() as small:
        small.setattr(HostBackend, "free_memory", lambda self: 100)
        with pytest.raises(BackendError, match="use fewer worlds"):
            sim.add_group(PENDULUM, 2)
    sim.step(2)
    assert [state(group) for group in sim.groups] == [alone(ROBOTS[0], 3, 4), alone(ROBOTS[1], 2, 4)]


def test_a_group_that_went_is_refused() -> None:
    sim, other = batch(), batch()
    gone, stays = sim.groups
    sim.remove_group(gone)
    for call in (
        lambda: gone.qpos,
        lambda: gone.reset(),
        lambda: gone.paused,
        lambda: gone.set_state(qvel=np.zeros(gone.model.nv)),
    ):
        with pytest.raises(RuntimeError, match="was removed from its simulation"):
            call()
    for group in (gone, other.groups[0]):
        with pytest.raises(ValueError, match="is not in this simulation"):
            sim.remove_group(group)
    with pytest.raises(ValueError, match="is the last group"):
        sim.remove_group(stays)
    sim.step()


def test_many_changes_leave_no_trace() -> None:
    """Neither memory nor the scheduler's table of segments grows with the number of groups that came and went."""
    sim = batch()
    sizes = set()
    for _ in range(4):
        group = sim.add_group(ROBOTS[2], 2)
        sim.step()
        sizes.add((sim.nbytes(), len(sim.schedule.segments)))
        sim.remove_group(group)
    assert len(sizes) == 1


def test_groups_of_the_jax_backend_come_and_go() -> None:
    sim = Simulation([(PENDULUM, 2)], backend="jax")
    (first,) = sim.groups
    first.set_state(qpos=np.full((2, 1), 0.5))
    sim.step(3)
    second = sim.add_group(PENDULUM, 1)
    second.set_state(qpos=np.full((1, 1), 0.5))
    first.paused = True
    sim.step(3)
    assert np.array_equal(np.asarray(first.qpos)[0], np.asarray(second.qpos)[0])
    sim.remove_group(first)
    sim.step(2)
    assert np.allclose(second.time, 5 * 0.002)


def test_the_longest_steps_come_first_in_program_order() -> None:
    """The pendulum ends while the robot goes on, also if it is the first group."""
    sim = Simulation([(PENDULUM, 2), (ROBOTS[0], 3)], backend="host", executor="serial", emission="counted")
    executor = make_executor("serial", **sim.schedule.options, record="order")
    order = sim.schedule.run(executor, 1).order
    assert [call.tag.groups for call in (order[0], order[1])] == [(1,), (0,)]
    third = sim.add_group(ROBOTS[1], 2)
    sim.remove_group(sim.groups[1])
    assert sim.schedule.run(executor, 1).order[0].tag.groups == (third.index,)
