"""Steps issued ahead of counts give the bits of counted steps, even if arenas turn out to be too small."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simengine import Simulation, load_model
from simengine.backends.host import HostBackend
from simengine.emission import store
from simengine.model import ModelTable
from simengine.state.fields import ISLAND_ARENAS
from simengine.zoo import pile_xml
from simengine_scheduler import FixedList
from simengine_scheduler.executors.serial import SerialExecutor
from tests.emission.batches import KEEP, STATE, WORLDS, batch, bits, source, with_room
from tests.emission.lists import written
from tests.models import ALL, gymnasium_path


@pytest.mark.parametrize(
    ("executor", "room"), [("serial", 1), pytest.param("threads", 1, marks=pytest.mark.slow), ("shuffled", 64)]
)
def test_steps_are_those_of_counted_emission(executor: str, room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    names = tuple(name for name in ALL if name not in ("terrain", "rubble"))
    counted = batch(names, executor="serial", emission="counted", keep=KEEP)
    with_room(monkeypatch, room)
    ahead = batch(names, executor=executor, emission="ahead", keep=KEEP, shards=2, executor_options={"seed": 3})
    for n in (1, 4, 2):
        counted.step(n)
        ahead.step(n)
        assert bits(ahead) == bits(counted)
        assert bits(ahead, KEEP) == bits(counted, KEEP)
    for one, other in zip(counted.groups, ahead.groups, strict=True):
        assert counted.schedule.counts(one.index) == ahead.schedule.counts(other.index)
    assert all(isinstance(emitter, FixedList) for emitter in ahead.schedule.emitters())
    by_islands = {HostBackend().form_of(group.model.table, "float32").has_islands for group in ahead.groups}
    assert by_islands == {False, True}


@pytest.mark.parametrize("rounds", [1, 3])
def test_a_shard_without_room_stands_still_and_goes_on_where_it_stood(
    rounds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ants land in the middle of eight steps, in any evaluation of a step: nothing is lost or done twice."""
    with_room(monkeypatch, 1)
    monkeypatch.setattr(SerialExecutor, "rounds", rounds, raising=False)
    ant = gymnasium_path("ant")
    sims = [
        Simulation(ant, 6, backend="host", executor="serial", emission=emission, shards=2)
        for emission in ("ahead", "counted")
    ]
    heights = np.linspace(0.5, 0.53, 6)
    sizes = set()
    for _ in range(6):
        for sim in sims:
            sim.step(8)
        sizes.add(sims[0].nbytes())
        assert bits(sims[0]) == bits(sims[1])
    assert len(sizes) > 1
    for sim in sims:
        qpos = np.tile(sim.model.qpos0, (6, 1))
        qpos[:, 2] = heights
        sim.set_state(qpos=qpos, qvel=np.zeros(sim.model.nv))
        sim.step(3)
    assert bits(sims[0]) == bits(sims[1])


@pytest.mark.parametrize("small", ["contact", "row", *ISLAND_ARENAS])
def test_worlds_by_islands_stand_still_while_an_arena_is_too_small(small: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bodies fall on each other, so that islands grow in the middle of steps. Nothing is lost or done twice."""
    first = store.first_entries

    def room(model: ModelTable, space: str, worlds: int, ahead: bool, beyond: int = 0) -> int:
        return 1 if space == small else first(model, space, worlds, ahead, beyond)

    monkeypatch.setattr(store, "first_entries", room)
    model = load_model(pile_xml(10, "mixed"))
    model.table.solve_by_islands(True)
    model.table.solve_dense_up_to(6)
    sims = [Simulation(model, 4, backend="host", executor="serial", emission=how) for how in ("ahead", "counted")]
    rooms = [sims[0]._engine.stores[0].arena(small, 0).capacity]
    for _ in range(12):
        for sim in sims:
            sim.step(8)
        rooms.append(sims[0]._engine.stores[0].arena(small, 0).capacity)
        assert bits(sims[0]) == bits(sims[1])
    assert rooms[0] == 1
    assert rooms[-1] > 1


def test_lists_ahead_are_fixed_and_name_every_call() -> None:
    sim = batch(("ant", "hopper"), emission="ahead", shards=1)
    sim.step(2)
    listed, lists = [entry.call for entry in sim.schedule.kernel_list], sim.schedule.emitters()
    assert listed == [call for calls in lists for call in calls]
    sim.step(3)
    assert all(one is other for one, other in zip(lists, sim.schedule.emitters(), strict=True))


def test_what_a_call_reads_of_all_worlds_is_not_read_tile_by_tile() -> None:
    sim = batch(("ant",), executor="serial", emission="ahead", shards=1)
    sim.step()
    entries = sim.schedule.kernel_list
    narrow = next(entry.call for entry in entries if "contact_dist" in written(sim, entry))
    count = next(entry.call for entry in entries if "counts" in written(sim, entry))
    counts = sim.schedule.segments.intern("counts", 0, None)
    assert counts in narrow.reads, "it finds its contacts' places by the counts of all worlds"
    assert counts not in narrow.tiled
    assert set(narrow.writes) < set(narrow.tiled)
    assert counts in count.writes
    assert counts in count.tiled


def test_calls_over_one_list_of_worlds_go_by_ranges_of_the_list() -> None:
    """Rows and their solution are over the same list. Of what is not divided by lists, nothing goes by them."""
    sim = batch(("ant",), executor="serial", emission="stages-ahead", shards=1)
    sim.step()
    segments, calls = sim.schedule.segments, [entry.call for entry in sim.schedule.kernel_list]
    rows = next(call for call in calls if "efc_J" in {segments.buffer(s) for s in call.writes})
    solve = next(call for call in calls if {"efc_J"} <= {segments.buffer(s) for s in call.reads})
    shared = set(rows.writes) & set(solve.reads)
    assert {segments.buffer(s) for s in shared} >= {"efc_J", "efc_D", "efc_aref"}
    assert shared <= set(rows.tiled) & set(solve.tiled)
    for call in (rows, solve):
        families = {segments.partition(s) for s in call.tiled}
        assert len(families) == 1
        assert None not in families


def test_a_world_that_fails_is_known_after_the_step() -> None:
    sim = batch(("hopper",), emission="ahead")
    np.asarray(sim.qvel)[2, 0] = np.inf
    sim.step()
    assert sim.groups[0].to_host(sim.field("world_status")).nonzero()[0].tolist() == [2]
    assert sim.schedule.counts()["bad"] == 1


def test_an_unknown_emission_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown emission 'soon'; choose one of auto, counted, ahead"):
        Simulation(source("hopper"), 1, backend="host", emission="soon")


@pytest.mark.parametrize("room", [1, 64])
@pytest.mark.parametrize(("emission", "rounds"), [("ahead", 1), ("ahead", 4), ("counted", 1)])
def test_controls_of_each_step_are_those_of_single_steps(
    emission: str, rounds: int, room: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each step has its own controls, even if a shard waits for a larger arena while others are at later steps."""
    names, steps = ("ant", "hopper", "half_cheetah"), 6
    monkeypatch.setattr(SerialExecutor, "rounds", rounds, raising=False)
    one_by_one = batch(names, executor="serial", emission="counted")
    at_once = batch(names, executor="serial", emission=emission, shards=3, keep=KEEP)
    with_room(monkeypatch, room)
    rng = np.random.default_rng(0)
    controls = [rng.uniform(-1, 1, (steps, WORLDS, group.model.nu)) for group in one_by_one.groups]
    controls[1] = controls[1][:1].repeat(steps, axis=0)
    for step in range(steps):
        one_by_one.step(ctrl=[own[step] for own in controls])
    at_once.step(steps, ctrl=[controls[0], controls[1][0], controls[2]])
    assert bits(at_once, (*STATE, "ctrl")) == bits(one_by_one, (*STATE, "ctrl"))
    for sim in (one_by_one, at_once):
        sim.step(5)  # controls stay
    assert bits(at_once, (*STATE, "ctrl")) == bits(one_by_one, (*STATE, "ctrl"))


def test_steps_together_are_one_list_that_is_found_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SerialExecutor, "rounds", 4, raising=False)
    sim = batch(("hopper", "half_cheetah"), executor="serial", emission="ahead", shards=1)
    runs, run = list[list[Any]](), SerialExecutor.run
    monkeypatch.setattr(SerialExecutor, "run", lambda self, lists: (runs.append(lists), run(self, lists))[1])
    controls = [np.zeros((7, WORLDS, group.model.nu)) for group in sim.groups]
    for _ in range(2):
        sim.step(7, ctrl=controls)
    assert len(runs) == 4
    one = [len(list(calls)) for calls in sim.schedule.emitters()]
    assert [[len(calls) for calls in lists] for lists in runs[:2]] == [[k * n for n in one] for k in (4, 3)]
    assert all(
        a is b for lists, again in zip(runs[:2], runs[2:], strict=True) for a, b in zip(lists, again, strict=True)
    )
    sim.step(3)
    assert runs[-1][0] is not runs[0][0], "its own controls are read where none are given"


def test_bad_controls_of_steps_are_refused_and_nothing_is_changed() -> None:
    sim = batch(("ant", "hopper"))
    before = bits(sim, ("ctrl",))
    nu = sim.groups[0].model.nu
    with pytest.raises(ValueError, match=r"ctrl has shape \(3, 5, 8\), expected \(4, 5, 8\) for 4 steps"):
        sim.step(4, ctrl=[np.zeros((3, WORLDS, nu)), None])
    with pytest.raises(ValueError, match="controls of 1 groups and there are 2"):
        sim.step(4, ctrl=[np.zeros((4, WORLDS, nu))])
    with pytest.raises(ValueError, match="ctrl holds nan"):
        sim.step(2, ctrl=[np.ones((WORLDS, nu)), np.full((2, WORLDS, 3), np.nan)])
    assert bits(sim, ("ctrl",)) == before
