"""Lists of near pairs, whose entries have half a word each unless a model has too many pairs or contacts for that."""

from __future__ import annotations

import numpy as np
import pytest

from simengine import Simulation, load_model
from simengine.model import load_table
from simengine.model.build import search_sizes
from simengine.state.fields import FIELD, INTEGRATION_STATE
from tests.helpers.humanoids import humanoid_xml
from tests.models import OWN


def pairs(number: int, contacts: int) -> dict[str, np.ndarray]:
    """What the table says of so many candidate pairs, of which the first may have all contacts."""
    return {"cand_type": np.zeros(number, int), "slot_cand": np.zeros(contacts, int)}


@pytest.mark.parametrize(
    ("number", "contacts", "words"),
    [(0, 0, 0), (1, 1, 1), (502, 942, 251), (7, 7, 4), (65535, 65535, 32768), (65536, 9, 65536), (9, 65536, 9)],
)
def test_two_entries_share_a_word_where_both_have_16_bits(number: int, contacts: int, words: int) -> None:
    assert search_sizes(pairs(number, contacts))["nnear"] == words


@pytest.mark.parametrize("name", ["humanoid", "pile", "terrain"])
def test_entries_of_whole_words_give_the_same_bits(name: str) -> None:
    found = []
    for wide in (False, True):
        model = load_model(humanoid_xml() if name == "humanoid" else OWN[name])
        assert model.table.nnear < model.table.ncand
        if wide:
            model.table.sizes["nnear"] = model.table.ncand
        with Simulation(model, 5, backend="host", executor="serial", emission="ahead") as sim:
            group = sim.groups[0]
            group.set_state(qvel=np.random.default_rng(3).normal(size=(5, model.nv)))
            sim.step(100)
            assert sim.schedule.counts()["ncon"] > 3
            found.append([group.to_host(group.field(n)).tobytes() for n in INTEGRATION_STATE if FIELD[n].dims])
    assert found[0] == found[1]


def test_the_table_of_a_model_with_contacts_says_so() -> None:
    table = load_table(humanoid_xml())
    assert table.nnear == -(-table.ncand // 2)
