"""MuJoCo lists all contacts in gaps, also with the flag `override`."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from simengine import Simulation, check_model, load_model
from simengine.check.gaps import with_whole_gaps
from simengine.check.oracle import Oracle
from tests.helpers.checkout import ROOT

GAP = """
<mujoco><option o_margin="0.01" gravity="0 0 0"><flag override="enable"/></option><worldbody>
  <body name="a"><freejoint/><geom size="0.1" gap="0.02"/></body>
  <body name="b" pos="0 0 0.22"><joint type="slide" axis="0 0 1" range="-0.02 0.02" limited="true"/>
  <geom size="0.1" gap="0.02"/></body></worldbody></mujoco>"""
STATIC = """
<mujoco><option o_margin="0.01"><flag override="enable"/></option><worldbody>
  <body><body name="a"><geom type="capsule" size="0.06 0.07"/></body></body>
  <body name="b" pos="0 0 0.35"><joint type="slide" axis="0 0 1"/><geom size="0.1" gap="0.5"/></body></worldbody>
  <actuator><adhesion body="a" ctrlrange="0 1"/></actuator></mujoco>"""


def listed(mj: mujoco.MjModel, far: float) -> int:
    """Number of contacts at the slide's coordinate [m]."""
    data = mujoco.MjData(mj)
    data.qpos[-1] = far
    mujoco.mj_forward(mj, data)
    return int(data.ncon)


@pytest.mark.parametrize(("far", "own", "all_"), [(0.005, 1, 1), (0.02, 0, 1), (0.045, 0, 1), (0.055, 0, 0)])
def test_contacts_up_to_margin_plus_gap_are_listed(far: float, own: int, all_: int) -> None:
    mj = mujoco.MjModel.from_xml_string(GAP)
    assert listed(mj, far - 0.02) == own, "MuJoCo drops the one in the gap"
    assert listed(with_whole_gaps(mj), far - 0.02) == all_


def test_so_are_those_of_bodies_that_do_not_move() -> None:
    mj = mujoco.MjModel.from_xml_string(STATIC)
    assert (listed(mj, 0.0), listed(with_whole_gaps(mj), 0.0)) == (0, 1)


def test_models_that_skip_no_contact_are_left_as_they_are() -> None:
    for text in (GAP.replace(' override="enable"', ""), GAP.replace('gap="0.02"', "")):
        mj = mujoco.MjModel.from_xml_string(text)
        assert with_whole_gaps(mj) is mj


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_an_adhesion_actuator_pulls_at_contacts_in_the_gap(dtype: str) -> None:
    mj = mujoco.MjModel.from_xml_string((ROOT / "tests" / "corpus" / "adhesion_across_a_gap.xml").read_text())
    oracle = Oracle(mj, dtype)
    mujoco.mj_forward(oracle.mj, oracle.data)
    assert np.abs(oracle.data.actuator_moment).max() > 0.1
    with Simulation(load_model(mj), backend="host", dtype=dtype) as sim:
        sim.forward()
        ours = np.asarray(sim.field("actuator_moment")).ravel()
    dense = np.zeros((mj.nu, mj.nv))
    data = oracle.data
    mujoco.mju_sparse2dense(dense, data.actuator_moment, data.moment_rownnz, data.moment_rowadr, data.moment_colind)
    np.testing.assert_allclose(ours, dense.ravel(), atol=1e-9 if dtype == "float64" else 1e-5)


def test_a_check_misses_no_contact_in_the_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the larger boxes, MuJoCo would list fewer contacts than the engine."""
    mj = mujoco.MjModel.from_xml_string(STATIC)
    report = check_model(mj, backend="host", dtype="float64", num_states=20, num_steps=5)
    assert report.passed, report
    monkeypatch.setattr("simengine.check.oracle.with_whole_gaps", lambda model: model)
    report = check_model(mj, backend="host", dtype="float64", num_states=20, num_steps=5)
    assert not report.passed
