"""What worlds take is known before it is asked for, to the byte; what does not fit is refused with the figures."""

from __future__ import annotations

import pytest

from simengine import BackendError, Simulation, load_model
from simengine.backends.host import HostBackend
from simengine.emission.memory import footprint
from simengine.engine import ListEngine
from tests.islands import heap
from tests.models import OWN

WORLDS = 6
MODELS = {name: OWN[name] for name in ("two_arms", "dual", "ropes")} | {"heap": heap(12)}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", MODELS)
def test_the_footprint_is_what_a_step_allocates(name: str, dtype: str) -> None:
    model = load_model(MODELS[name])
    sim = Simulation(model, WORLDS, backend="host", dtype=dtype, shards=1)
    sim.step(2)
    engine = sim._engine
    assert isinstance(engine, ListEngine)
    store = engine.stores[0]
    needs = footprint(model, dtype, frozenset())
    arenas = {"contact": (store.contacts[0], needs.contact), "row": (store.rows[0], needs.row)}
    of_arenas = 0
    for arena, each in arenas.values():
        held = sum(array.nbytes for array in arena.arrays.values())
        assert held == arena.capacity * each
        of_arenas += held
    of_islands = sum(a.nbytes for arenas in store.islands.values() for arena in arenas for a in arena.arrays.values())
    shards = sum(store.array(name).nbytes for name in ("totals", "totals_host", "island_totals") if store.has(name))
    shards += store.island_totals_host.nbytes
    assert sim.nbytes() - of_arenas - of_islands - shards == WORLDS * needs.world


def test_pairs_that_are_found_have_arenas_of_their_own() -> None:
    model = load_model(heap(12))
    model.find_pairs(True)
    sim = Simulation(model, WORLDS, backend="host", dtype="float32", shards=1)
    sim.step(2)
    store, needs = sim._engine.stores[0], footprint(model, "float32", frozenset())
    assert footprint(load_model(heap(12)), "float32", frozenset()).pair == 0
    for space in ("pair", "slot"):
        arena = store.pairs[space][0]
        assert sum(array.nbytes for array in arena.arrays.values()) == arena.capacity * getattr(needs, space) > 0
    assert needs.most(model, 1) > needs.world + needs.slot * model.ncon_max


def test_worlds_that_do_not_fit_are_refused_before_anything_is_allocated(monkeypatch: pytest.MonkeyPatch) -> None:
    model = load_model(OWN["two_arms"])
    each = footprint(model, "float32", frozenset()).world
    monkeypatch.setattr(HostBackend, "free_memory", lambda self: 10 * each)
    monkeypatch.setattr(HostBackend, "zeros", lambda *_: pytest.fail("memory was asked for"))
    with pytest.raises(BackendError, match=rf"11 worlds of model 'two_arms' take {each} bytes each"):
        Simulation(model, 11, backend="host")
    monkeypatch.undo()
    monkeypatch.setattr(HostBackend, "free_memory", lambda self: 11 * each)
    Simulation(model, 11, backend="host").step()


def test_the_machine_tells_how_much_is_free() -> None:
    free = HostBackend().free_memory()
    assert free is None or free > 2**20
