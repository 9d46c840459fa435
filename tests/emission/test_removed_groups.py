"""The memory of a group that was removed, or of a simulation that was closed, is released, at once if nothing runs."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

from simengine import Simulation, load_model
from simengine.backends.host import HostBackend
from simengine.engines.list_engine import ListEngine
from simengine.model import load_table
from simengine_scheduler import Executor, make_executor
from simengine_scheduler.testing import CalledDevice
from tests.models import OWN

MODEL = "two_arms"


@pytest.fixture
def without_collection() -> Iterator[None]:
    """Python looks for no cycles. It would do so only once many objects have been made, however large arrays are."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("without_collection")
@pytest.mark.parametrize("emission", ["whole", "counted", "ahead"])
def test_a_removed_group_and_a_closed_simulation_leave_their_memory_at_once(emission: str) -> None:
    model = load_model(OWN[MODEL])
    with Simulation([(model, 2), (model, 1)], backend="host", executor="serial", emission=emission) as sim:
        group = sim.add_group(model, 3)
        group.set_params(body_mass=model.mj.body_mass)
        sim.step(2)
        sim.forward()
        sim.step()
        arrays = [weakref.ref(group.qpos), weakref.ref(group.field("qvel"))]
        sim.remove_group(group)
        assert all(array() is None for array in arrays)
        with sim.copy() as other:
            other.step()
            arrays = [weakref.ref(own.qpos) for own in other.groups]
        del other
        assert all(array() is None for array in arrays)


def executor_of(engine: ListEngine, name: str) -> Executor:
    options: dict[str, Any] = {"driver": CalledDevice(1), "stream": 0, "device": "cuda"}
    return make_executor(name, segments=engine.segments, **options)


@pytest.mark.parametrize("emission", ["counted", "ahead"])
@pytest.mark.parametrize("name", ["serial", "streams"])
def test_the_memory_of_a_removed_group_is_released(name: str, emission: str) -> None:
    model = load_table(OWN[MODEL])
    engine = ListEngine([(model, 1)], HostBackend(), "serial", "float32", 1, emission, {})
    stores = list[weakref.ref[Any]]()
    with executor_of(engine, name) as executor:
        for worlds in (1, 2, 3):
            group = engine.add(model, worlds)
            stores.append(weakref.ref(engine.stores[group]))
            for _ in range(2):
                engine.step(1, frozenset(), {}, executor)
            engine.remove(group)
            engine.step(1, frozenset(), {}, executor)
            gc.collect()
            assert all(store() is None for store in stores)
    engine.close()
