"""Worlds that a GPU solves by islands, stepped ahead of the counts of islands, on the host with lanes as fibers."""

from __future__ import annotations

import numpy as np
import pytest

from simengine import Simulation, load_model
from simengine.backends import select
from simengine.emission import store
from simengine.zoo import pile_xml
from simengine_scheduler import FixedList
from tests.emission.batches import bits
from tests.helpers.cuda_on_host.backend import FiberBackend

WORLDS = 3


def stepped(how: str, monkeypatch: pytest.MonkeyPatch) -> tuple[list[bytes], bool]:
    """The state of heaps of ten bodies as they fall on each other, and whether their steps are fixed lists."""
    monkeypatch.setitem(select._MAKERS, "cuda", FiberBackend)
    monkeypatch.setattr(FiberBackend, "how", how)
    sim = Simulation(load_model(pile_xml(10, "mixed")), WORLDS, backend="cuda", executor="serial")
    rng = np.random.default_rng(0)
    qpos = np.tile(sim.model.qpos0, (WORLDS, 1))
    qpos[:, 2::7] -= rng.uniform(0.05, 0.12, (WORLDS, 1))
    sim.set_state(qpos=qpos)
    for _ in range(3):
        sim.step()
    assert any("islands" in entry.name for entry in sim.schedule.kernel_list)
    return bits(sim), all(isinstance(emitter, FixedList) for emitter in sim.schedule.emitters())


def test_islands_have_the_same_bits_ahead_of_their_counts_whatever_room_there_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counted, fixed = stepped("counted", monkeypatch)
    assert not fixed
    ahead, fixed = stepped("ahead", monkeypatch)
    assert fixed
    assert ahead == counted
    monkeypatch.setattr(store, "first_entries", lambda *_: 1)
    assert stepped("ahead", monkeypatch) == (counted, True)
