"""Candidate pairs against MuJoCo's own contacts: which pairs may touch, in which order, with which parameters."""

from __future__ import annotations

from collections import Counter

import mujoco
import numpy as np
import pytest

from simengine.model import ModelTable, load_table
from simengine.model.pairs import geom_pairs, pair_table
from simengine.model.rows import row_table
from tests.helpers.oracle import sample
from tests.models import OWN, compile_model

FILTERS = """
<mujoco model="filters">
  <option>{flag}</option>
  <default><geom size="0.2" density="100"/></default>
  <worldbody>
    <geom name="floor" type="plane" size="3 3 1" pos="0 0 -0.3"/>
    <body name="shelf"><geom name="shelf" type="capsule" size="0.1 0.3"/></body>
    <body name="a">
      <joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 0 1"/>
      <geom name="a"/>
      <body name="welded" pos="0.1 0 0"><geom name="welded" type="capsule" size="0.15 0.2"/>
        <body name="elbow" pos="0.1 0 0"><joint type="hinge" axis="0 1 0"/><geom name="elbow"/>
          <body name="hand" pos="0.1 0 0">
            <joint type="hinge" axis="0 0 1"/><geom name="hand" contype="2" conaffinity="1"/>
          </body>
        </body>
      </body>
    </body>
    <body name="b"><freejoint/><geom name="b" contype="1" conaffinity="2"/></body>
    <body name="c"><freejoint/>
      <geom name="c1" contype="4" conaffinity="4"/><geom name="c2" type="capsule" size="0.1 0.2"/>
    </body>
    <body name="ghost"><freejoint/><geom name="ghost" contype="0" conaffinity="0"/></body>
  </worldbody>
  <contact><exclude body1="a" body2="c"/><exclude body1="world" body2="b"/></contact>
</mujoco>
"""

MIXING = """
<mujoco model="mixing">
  <worldbody>
    <geom type="plane" size="3 3 1" pos="0 0 -0.1" margin="0.1" gap="0.02" friction="0.3 0.02 0.001" solmix="0"/>
    {bodies}
  </worldbody>
</mujoco>
"""
GEOMS = (
    'margin="0.05" gap="0.3" friction="0.9 0.001 0.01" solref="0.05 0.7" solimp="0.5 0.8 0.01 0.3 3" solmix="3"',
    'priority="2" friction="0.1 0.2 0.3" solref="-100 -3" solimp="0.1 0.2 0.3 0.4 5" condim="1"',
    'priority="2" friction="0.4 0.1 0.3" solref="0.1 1" condim="3" solmix="0.25" gap="0.4"',
    'priority="-1" friction="5 5 5" condim="1"',
    'solref="-50 -2" solmix="0" friction="0 0 0"',
    'condim="1" solmix="0" margin="0.02"',
)


EXPLICIT = """
<mujoco model="explicit">
  <option cone="elliptic"/>
  <default><geom size="0.2" density="100"/></default>
  <worldbody>
    <geom name="floor" type="plane" size="1 1 1" pos="0 0 -0.1"/>
    <geom name="wall" type="capsule" size="0.1 0.2"/>
    <body name="a"><freejoint/>
      <geom name="a1" margin="0.1"/><geom name="a2" type="capsule" size="0.1 0.1"/>
      <body name="fixed"><geom name="fixed" size="0.15" contype="0" conaffinity="0"/></body>
      <body name="c"><joint type="hinge"/><geom name="c"/></body>
    </body>
    <body name="b"><freejoint/><geom name="b1" contype="0" conaffinity="0"/><geom name="b2"/></body>
    <body name="still"><geom name="still"/></body>
  </worldbody>
  <contact>
    <pair geom1="b1" geom2="a2" friction="1 0.9 0.1 0.2 0.3" solref="0.01 1" solreffriction="-100 -5"
          solimp="0.8 0.9 0.01 0.4 3" margin="0.05" gap="0.02"/>
    <pair geom1="a1" geom2="floor"/>
    <pair geom1="c" geom2="a1" friction="0 0 0 0 0"/>
    <pair geom1="a2" geom2="a1"/>
    <pair geom1="still" geom2="wall"/>
    <pair geom1="a2" geom2="fixed"/>
    <pair geom1="b2" geom2="a1" margin="0.01"/>
    <pair geom1="a1" geom2="b2" condim="1"/>
    <pair geom1="wall" geom2="a2" condim="1"/>
    <exclude body1="a" body2="b"/>
    <exclude body1="world" body2="c"/>
  </contact>
</mujoco>
"""


def parameters_model() -> mujoco.MjModel:
    """Spheres at one place with every kind of contact parameter, over a plane that also touches them."""
    bodies = "".join(f'<body><freejoint/><geom size="0.2" {text}/></body>' for text in GEOMS)
    return mujoco.MjModel.from_xml_string(MIXING.format(bodies=bodies))


def random_poses(mj: mujoco.MjModel, n: int, spread: float, seed: int = 0) -> np.ndarray:
    """(n, nq) with every joint near zero, so that most geoms touch."""
    rng = np.random.default_rng(seed)
    qpos = np.tile(mj.qpos0, (n, 1))
    for j in range(mj.njnt):
        adr = mj.jnt_qposadr[j]
        width = 3 if mj.jnt_type[j] == mujoco.mjtJoint.mjJNT_FREE else 1
        qpos[:, adr : adr + width] += rng.normal(size=(n, width)) * spread
        if width == 3:
            qpos[:, adr + 3 : adr + 7] = rng.normal(size=(n, 4))
    return qpos


def assert_contacts_follow_the_candidates(
    mj: mujoco.MjModel, model: ModelTable, poses: np.ndarray
) -> Counter[tuple[int, int]]:
    """MuJoCo's contacts are of candidate pairs, in their order, at most as many a pair as its slots; counts by pair."""
    data, seen = mujoco.MjData(mj), Counter[tuple[int, int]]()
    number = {(int(a), int(b)): i for i, (a, b) in enumerate(zip(model.cand_geom1, model.cand_geom2, strict=True))}
    slots = np.bincount(model.slot_cand, minlength=model.ncand)
    for qpos in poses:
        data.qpos[:] = qpos
        mujoco.mj_forward(mj, data)
        found = [number[int(a), int(b)] for a, b in data.contact.geom.reshape(-1, 2)]
        assert found == sorted(found)
        assert all(count <= slots[cand] for cand, count in Counter(found).items())
        seen.update((int(a), int(b)) for a, b in data.contact.geom.reshape(-1, 2))
    return seen


@pytest.mark.parametrize("flag", ["", '<flag filterparent="disable"/>'])
def test_filters_let_through_what_mujoco_lets_through(flag: str) -> None:
    """Every candidate pair occurs among MuJoCo's contacts, and no other: masks, excludes, parents, welds, the flag."""
    mj = mujoco.MjModel.from_xml_string(FILTERS.format(flag=flag))
    model = load_table(mj)
    seen = assert_contacts_follow_the_candidates(mj, model, random_poses(mj, 300, 0.1))
    assert set(seen) == set(zip(model.cand_geom1.tolist(), model.cand_geom2.tolist(), strict=True))
    assert len(seen) > 10


def test_the_parent_filter_flag_adds_pairs() -> None:
    models = [load_table(FILTERS.format(flag=flag)) for flag in ("", '<flag filterparent="disable"/>')]
    assert models[0].ncand < models[1].ncand


@pytest.mark.parametrize(
    "name", ["ant", "half_cheetah", "hopper", "walker2d", "pile", "two_arms", "contact_parameters"]
)
def test_contacts_of_random_states_follow_the_candidate_order(name: str) -> None:
    mj = compile_model(name)
    seen = assert_contacts_follow_the_candidates(mj, load_table(mj), sample(name).qpos)
    assert sum(seen.values()) > 10


def test_combined_parameters_are_those_of_mujocos_contacts() -> None:
    """Friction, solref, solimp, margin and dimension of each pair: priority, solmix, maxima, sums."""
    mj = parameters_model()
    model = load_table(mj)
    data, seen = mujoco.MjData(mj), set()
    for qpos in random_poses(mj, 20, 0.02):
        data.qpos[:] = qpos
        mujoco.mj_forward(mj, data)
        for contact in data.contact:
            pair = (model.cand_geom1 == contact.geom1) & (model.cand_geom2 == contact.geom2)
            (cand,) = np.flatnonzero(pair)
            seen.add(int(cand))
            assert model.cand_condim[cand] == contact.dim
            np.testing.assert_array_equal(model.cand_friction[cand], contact.friction)
            np.testing.assert_array_equal(model.cand_solref[cand], contact.solref)
            np.testing.assert_array_equal(model.cand_solimp[cand], contact.solimp)
            assert model.cand_margin[cand] == contact.includemargin
    assert len(seen) == model.ncand == len(GEOMS) * (len(GEOMS) + 1) // 2


def test_explicit_pairs_come_first_and_keep_their_own_parameters() -> None:
    """Order, doubles, filters they pass, and every parameter of explicit pairs among others."""
    mj = mujoco.MjModel.from_xml_string(EXPLICIT)
    candidates = geom_pairs(mj)
    table = pair_table(mj, candidates)
    table["cand_rows"] = row_table(mj, *(table[f"cand_{name}"] for name in ("condim", "geom1", "geom2")))["cand_rows"]
    data, seen = mujoco.MjData(mj), set()
    for qpos in random_poses(mj, 60, 0.05):
        data.qpos[:] = qpos
        mujoco.mj_forward(mj, data)
        at = -1
        for contact in data.contact:
            same = [c for c in range(len(candidates)) if candidates[c][:2] == (contact.geom1, contact.geom2)]
            # of a double pair MuJoCo lists the contacts in the pairs' order
            at = next(c for c in same if c > at or (c == at and len(same) == 1))
            seen.add(at)
            assert table["cand_condim"][at] == contact.dim
            for name in ("friction", "solref", "solreffriction", "solimp"):
                np.testing.assert_array_equal(table[f"cand_{name}"][at], getattr(contact, name), err_msg=name)
            assert table["cand_margin"][at] == contact.includemargin
            assert (table["cand_rows"][at] == 0) == (contact.exclude == 3)
    assert len(seen) == len(candidates)
    assert sum(candidate.pair >= 0 for candidate in candidates) == mj.npair
    assert (table["cand_rows"] == 0).sum() == 3


def test_gaps_add_to_the_distance_at_which_a_contact_is_listed() -> None:
    """Contacts appear at the sum of margins and gaps, and have rows from the sum of the margins on."""
    text = """<mujoco><worldbody><geom type="plane" size="3 3 1" margin="0.01" gap="0.02"/>
      <body><joint type="slide" axis="0 0 1"/><geom size="0.1" margin="0.03" gap="0.04"/></body></worldbody></mujoco>"""
    mj = mujoco.MjModel.from_xml_string(text)
    model = load_table(mj)
    assert (model.cand_margin[0], model.cand_gap[0]) == (pytest.approx(0.04), pytest.approx(0.06))
    data = mujoco.MjData(mj)
    for dist, ncon, nefc in ((0.101, 0, 0), (0.099, 1, 0), (0.041, 1, 0), (0.039, 1, 4)):
        data.qpos[0] = 0.1 + dist
        mujoco.mj_forward(mj, data)
        assert (data.ncon, data.nefc) == (ncon, nefc)


def test_slots_number_the_contacts_of_each_pair() -> None:
    model = load_table(OWN["pile"])
    for cand in range(model.ncand):
        slots = np.flatnonzero(model.slot_cand == cand)
        assert slots[0] == model.cand_slot[cand]
        assert model.slot_sub[slots].tolist() == list(range(len(slots)))
        assert len(slots) == (2 if model.cand_type[cand] in (1, 4) else 1)
