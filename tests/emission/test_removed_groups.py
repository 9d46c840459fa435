"""Executors keep nothing of the memory of a group that was removed."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

from simengine.backends.host import HostBackend
from simengine.engines.list_engine import ListEngine
from simengine.model import load_table
from simengine_scheduler import Executor, make_executor
from simengine_scheduler.testing import CalledDevice
from tests.models import OWN

MODEL = "two_arms"


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
            assert [store() for store in stores] == [None] * len(stores)
    engine.close()
