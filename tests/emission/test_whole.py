"""Whole steps on the host give the results of counted steps, and enlarge arenas that are too small."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from simengine import Simulation, load_model
from simengine.model import Model
from simengine_scheduler import make_executor
from tests.emission.batches import KEEP, STATE, batch, bits, with_room
from tests.emission.held import arrays_traced, assert_nothing_left_over
from tests.emission.lists import written
from tests.helpers.islands import heap
from tests.models import gymnasium_path

NAMES = ("hopper", "half_cheetah", "dual", "crates", "actuators", "ragdoll")


def kernels(sim: Simulation) -> list[tuple[str, int]]:
    return [(entry.name, entry.units) for entry in sim.schedule.kernel_list]


@pytest.mark.parametrize(("executor", "room"), [("serial", 64), ("threads", 1)])
def test_steps_are_those_of_counted_emission(executor: str, room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = batch(NAMES, executor="serial", emission="counted", keep=KEEP, shards=2)
    with_room(monkeypatch, room)
    whole = batch(NAMES, executor=executor, emission="whole", keep=KEEP, shards=2)
    for n in (1, 3):
        counted.step(n)
        whole.step(n)
        assert bits(whole) == bits(counted)
        assert bits(whole, KEEP) == bits(counted, KEEP)
        assert kernels(whole) == kernels(counted)
    for one, other in zip(counted.groups, whole.groups, strict=True):
        assert counted.schedule.counts(one.index) == whole.schedule.counts(other.index)


def found() -> Model:
    model = load_model(heap(20))
    model.table.find_pairs(True)
    return model


@pytest.mark.parametrize("many", [False, True])
def test_heaps_are_those_of_counted_emission(many: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Islands and pairs are counted in the middle of a step, where their arenas may have to move."""
    model = found() if many else load_model(heap(20))
    counted = Simulation(model, 6, backend="host", executor="serial", emission="counted", shards=2)
    expected = []
    for _ in range(3):
        counted.step(20)
        expected.append((bits(counted, STATE), kernels(counted)))
    with_room(monkeypatch, 1)
    with arrays_traced() as held:
        whole = Simulation(model, 6, backend="host", executor="threads", emission="whole", shards=2)
        before = whole.nbytes()
        for state, listed in expected:
            whole.step(20)
            assert bits(whole, STATE) == state
            assert kernels(whole) == listed
        assert "nisland" in written(whole, *whole.schedule.kernel_list)
        assert whole.nbytes() > before
        assert_nothing_left_over(whole, held())


def test_controls_of_each_step_are_those_of_single_steps() -> None:
    rng = np.random.default_rng(0)
    one, other = (Simulation(gymnasium_path("hopper"), 4, backend="host", emission="whole") for _ in range(2))
    ctrl = rng.uniform(-1, 1, (5, 4, one.model.nu))
    one.step(5, ctrl=ctrl)
    for now in ctrl:
        other.step(ctrl=now)
    assert bits(one, STATE) == bits(other, STATE)


def test_a_world_that_fails_is_known_after_the_step() -> None:
    sim = batch(("hopper",), emission="whole")
    np.asarray(sim.qvel)[2, 0] = np.inf
    sim.step(2)
    assert sim.groups[0].to_host(sim.field("world_status")).nonzero()[0].tolist() == [2]
    assert sim.schedule.counts()["bad"] == 1


def test_it_is_the_hosts_choice_unless_kernels_are_to_be_seen() -> None:
    def chosen(executor: str, record: str = "off") -> str:
        options = {"record": record}
        return Simulation(heap(2), 1, backend="host", executor=executor, executor_options=options).schedule.emission

    assert chosen("threads") == chosen("serial") == "whole"
    assert chosen("shuffled") == chosen("serial", "order") == "counted"


def test_a_trace_shows_the_kernels() -> None:
    sim = Simulation(gymnasium_path("hopper"), 4, backend="host", executor="serial", shards=1)
    sim.step()
    names = [name for name, _ in kernels(sim)]
    assert [event.name for event in sim.schedule.trace_step().events] == names
    assert len(names) > 4


def test_steps_of_shards_have_no_hazards_between_them() -> None:
    """Each shard's step waits for the one before it, and for no other shard's."""
    sim = Simulation(gymnasium_path("hopper"), 8, backend="host", emission="whole", shards=2)
    executor = make_executor("serial", **{**sim.schedule.options, "record": "order"})
    calls = sim.schedule.run(executor, 2, whole_steps=True).order
    assert [call.tag.shard for call in calls].count(0) == [call.tag.shard for call in calls].count(1) == 2
    conflicts = sim.schedule.segments.conflicts
    for call, other in combinations(calls, 2):
        touched = {*other.reads, *other.writes, *other.updates}
        written = (*call.writes, *call.updates)
        waits = any(also in touched for segment in written for also in conflicts[segment])
        assert waits == (call.tag.shard == other.tag.shard)


def test_on_the_host_small_worlds_of_many_trees_are_solved_by_islands_unless_chosen_otherwise() -> None:
    def by_islands(model: Model) -> bool:
        sim = Simulation(model, 1, backend="host")
        sim.forward()
        return "nisland" in written(sim, *sim.schedule.kernel_list)

    balls = "<mujoco>{}<worldbody>" + "<body><freejoint/><geom size='.1'/></body>" * 5 + "</worldbody></mujoco>"
    model = load_model(balls.format(""))
    assert by_islands(model)
    assert not model.table.has_islands
    assert not by_islands(load_model(balls.format("<option noslip_iterations='2'/>")))
    model.table.solve_by_islands(False)
    assert not by_islands(model)
    assert not by_islands(load_model(gymnasium_path("ant")))
