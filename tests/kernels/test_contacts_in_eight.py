"""Contacts that eight lanes of a GPU find, where four worlds share a warp, on the host with lanes as fibers."""

from __future__ import annotations

import numpy as np
import pytest

from simengine import Simulation, load_model
from simengine.backends import select
from simengine.plan import selection
from simengine.zoo import pile_xml
from tests.emission.batches import bits
from tests.helpers.cuda_on_host.backend import FiberBackend
from tests.helpers.islands import touching_arms

WORLDS = 5
MODELS = {"heap": pile_xml(10, "mixed"), "arms": touching_arms(3)}


def stepped(xml: str, most: int, monkeypatch: pytest.MonkeyPatch) -> tuple[list[bytes], list[str]]:
    """The state of falling bodies, and the names of the calls, if more than `most` worlds are many."""
    monkeypatch.setitem(select._MAKERS, "cuda", FiberBackend)
    monkeypatch.setattr(selection, "MERGED_WORLDS", most)
    sim = Simulation(load_model(xml), WORLDS, backend="cuda", executor="serial")
    qpos = np.tile(sim.model.qpos0, (WORLDS, 1))
    free = sim.model.table.mj.jnt_qposadr[sim.model.table.mj.jnt_type == 0]
    qpos[:, free + 2] -= np.linspace(0.05, 0.12, WORLDS)[:, None]
    sim.set_state(qpos=qpos)
    for _ in range(3):
        sim.step()
    assert sim.schedule.counts()["ncon"] > WORLDS
    return bits(sim), [entry.name for entry in sim.schedule.kernel_list]


@pytest.mark.parametrize("name", MODELS)
def test_eight_lanes_find_the_contacts_that_a_warp_does(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    few, _ = stepped(MODELS[name], WORLDS, monkeypatch)
    many, calls = stepped(MODELS[name], 0, monkeypatch)
    counting = any(call.startswith("counting_in_eight") for call in calls)
    assert counting == (name == "heap"), "models of light pairs alone count them with the positions"
    assert any(call.endswith("_in_eight") for call in calls)
    assert many == few


def test_lanes_count_contacts_of_any_world_where_no_pair_needs_a_search(monkeypatch: pytest.MonkeyPatch) -> None:
    few, _ = stepped(MODELS["heap"], WORLDS, monkeypatch)
    monkeypatch.setattr(selection, "FEWEST_PAIRS_LISTED", 1)
    many, calls = stepped(MODELS["heap"], 0, monkeypatch)
    assert any(call.startswith("count_near") for call in calls)
    assert many == few
