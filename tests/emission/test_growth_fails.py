"""Memory that ends while arenas grow: the step fails in one sentence, and the simulation can be used afterwards."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simengine import Simulation, load_model
from simengine.backends.host import HostBackend
from simengine.emission import store
from tests.helpers.islands import heap
from tests.models import OWN

STEPS = 4
MODELS = {"two_arms": OWN["two_arms"], "crates": OWN["crates"], "heap": heap(12)}


def started(name: str, emission: str) -> Simulation:
    executor = {"whole": "auto", "counted": "threads", "ahead": "serial"}[emission]
    return Simulation(load_model(MODELS[name]), 6, backend="host", executor=executor, emission=emission)


def bits(sim: Simulation) -> bytes:
    return np.asarray(sim.qpos).tobytes() + np.asarray(sim.qvel).tobytes()


@pytest.mark.parametrize("emission", ["counted", "ahead", "whole"])
@pytest.mark.parametrize("name", MODELS)
def test_a_step_without_memory_leaves_the_simulation_usable(
    name: str, emission: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each allocation of a growing arena fails once. Half an arena that is larger would be written beyond its end."""
    monkeypatch.setattr(store, "first_entries", lambda *_: 1)
    with started(name, emission) as sim:
        sim.step(STEPS)
        expected, zeros, said = bits(sim), HostBackend.zeros, list[str]()
    for allowed in range(0, 40, 5):
        asked = 0

        def limited(self: HostBackend, shape: tuple[int, ...], dtype: str, allowed: int = allowed) -> Any:
            nonlocal asked
            asked += 1
            if asked > allowed:
                raise MemoryError("none is left")
            return zeros(self, shape, dtype)

        with started(name, emission) as sim:
            monkeypatch.setattr(HostBackend, "zeros", limited)
            try:
                sim.step(STEPS)
            except RuntimeError as error:
                said.append(str(error))
            monkeypatch.setattr(HostBackend, "zeros", zeros)
            sim.reset()
            sim.step(STEPS)
            assert bits(sim) == expected
    assert len(said) > 3
    assert all("needs more memory for" in each and "use fewer worlds" in each for each in said), said
