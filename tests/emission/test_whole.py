"""Steps that are one call of the host do what counted ones do, and make room for themselves."""

from __future__ import annotations

import numpy as np
import pytest

from simengine import Simulation, load_model
from simengine.engines.list_engine import ListEngine
from simengine.model import Model
from simengine_scheduler import make_executor
from tests.emission.batches import KEEP, STATE, WORLDS, batch, bits, with_room
from tests.islands import heap
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
    with_room(monkeypatch, 1)
    whole = Simulation(model, 6, backend="host", executor="threads", emission="whole", shards=2)
    for _ in range(3):
        counted.step(20)
        whole.step(20)
        assert bits(whole, STATE) == bits(counted, STATE)
        assert kernels(whole) == kernels(counted)
    assert any(name.startswith("solve_islands") for name, _ in kernels(whole))
    engine = whole._engine
    assert isinstance(engine, ListEngine)
    assert not engine.stores[0].retired


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
    qvel = np.zeros((WORLDS, sim.model.nv))
    qvel[2, 0] = np.inf
    sim._engine.put(0, "qvel", None, qvel)
    sim.step(2)
    assert sim.groups[0].to_host(sim.field("world_status")).nonzero()[0].tolist() == [2]
    assert sim._engine.bad_worlds(0) == 1


def test_it_is_the_hosts_choice_unless_kernels_are_to_be_seen() -> None:
    def chosen(executor: str, record: str = "off") -> str:
        options = {"record": record}
        engine = Simulation(heap(2), 1, backend="host", executor=executor, executor_options=options)._engine
        assert isinstance(engine, ListEngine)
        return engine.emission

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
    engine = sim._engine
    assert isinstance(engine, ListEngine)
    executor = make_executor("serial", segments=engine.segments, record="order")
    calls = [emitter.whole(frozenset()) for emitter in engine.emitters[0]]
    touched = [{*call.reads, *call.writes, *call.updates} for call in calls]
    conflicts = engine.segments.conflicts
    assert not any(other in touched[1] for one in touched[0] for other in conflicts[one])
    assert executor.run([[call, call] for call in calls]).counters.calls == 4


def test_on_the_host_small_worlds_of_many_trees_are_solved_by_islands_unless_chosen_otherwise() -> None:
    def by_islands(model: Model) -> bool:
        engine = Simulation(model, 1, backend="host")._engine
        assert isinstance(engine, ListEngine)
        return engine.stores[0].model.has_islands

    balls = "<mujoco>{}<worldbody>" + "<body><freejoint/><geom size='.1'/></body>" * 3 + "</worldbody></mujoco>"
    model = load_model(balls.format(""))
    assert by_islands(model)
    assert not model.table.has_islands
    assert not by_islands(load_model(balls.format("<option noslip_iterations='2'/>")))
    model.table.solve_by_islands(False)
    assert not by_islands(model)
    assert not by_islands(load_model(gymnasium_path("ant")))
