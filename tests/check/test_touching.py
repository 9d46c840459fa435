"""Edges that are parallel but for rounding are as near at many points: `simengine check` takes any, and no others."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import simengine.check.touching as touching
from simengine import load_model
from simengine.check.oracle import Evaluation, Oracle
from simengine.check.solved import Listed
from simengine.check.states import Sampler, State
from simengine.check.touching import touching_elsewhere

# A prism along x whose edge points down; the other's points up, and is tilted by an angle about y [rad].
ROOF = "-.1 -.05 .05  .1 -.05 .05  -.1 .05 .05  .1 .05 .05  -.1 0 0  .1 0 0"
FLOOR = "-.1 -.05 -.05  .1 -.05 -.05  -.1 .05 -.05  .1 .05 -.05  -.1 0 0  .1 0 0"
BOUNDS = (5e-4, 5e-4, 5e-4)
ALONG, ACROSS = np.array([0.05, 0.0, 0.0]), np.array([0.0, 0.002, 0.0])  # [m]; ACROSS is 1 % of the length


def edges(angle: float) -> mujoco.MjModel:
    return mujoco.MjModel.from_xml_string(f"""
<mujoco><compiler angle="radian"/>
  <asset><mesh name="roof" vertex="{ROOF}"/><mesh name="floor" vertex="{FLOOR}"/></asset>
  <worldbody><geom type="mesh" mesh="floor" euler="0 {angle} 0" margin="0.01"/>
    <body pos="0 0 0.001"><freejoint/><geom type="mesh" mesh="roof" margin="0.01"/></body></worldbody></mujoco>""")


def accepts(monkeypatch: pytest.MonkeyPatch, angle: float, moved: np.ndarray, longer: float = 1.0) -> bool:
    """Whether a contact is accepted whose point is moved [m], and whose distance is longer by a factor."""
    mj = edges(angle)
    sampler, oracle = Sampler(mj, 0), Oracle(mj, "float32")
    data = mujoco.MjData(mj)
    nothing = (np.zeros(0), np.zeros(0), np.zeros(mj.nv), np.zeros((mj.nbody, 6)))
    state = State("settled", data.qpos, data.qvel, *nothing, *sampler.random_mocap(), sampler.random_active())
    oracle.forward(state)
    evaluation = Evaluation(state, oracle.fields(), oracle.touched())
    pairs = list(map(tuple, evaluation.fields["contact_geom"].tolist()))
    assert len(pairs) == 1
    dist, pos, frame = (evaluation.fields[f"contact_{name}"] for name in ("dist", "pos", "frame"))
    centre = np.array([0.0, 0.0, pos[0, 2]])
    ours = Listed(pairs, longer * dist, centre[None] + moved, frame.reshape(-1, 3, 3))
    monkeypatch.setattr(touching, "contacts", lambda *_: [ours])
    return touching_elsewhere(load_model(mj), oracle, {7: evaluation}, BOUNDS, "host", "float32") == {7}


@pytest.mark.parametrize("moved", [0 * ALONG, ALONG, -ALONG])
def test_any_point_of_parallel_edges_is_accepted(monkeypatch: pytest.MonkeyPatch, moved: np.ndarray) -> None:
    assert accepts(monkeypatch, 1e-6, moved)


@pytest.mark.parametrize(("moved", "longer"), [(ACROSS, 1.0), (ALONG + ACROSS, 1.0), (2.1 * ALONG, 1.0), (ALONG, 1.6)])
def test_points_beside_the_edges_are_not_accepted(
    monkeypatch: pytest.MonkeyPatch, moved: np.ndarray, longer: float
) -> None:
    assert not accepts(monkeypatch, 1e-6, moved, longer)


def test_edges_that_are_not_parallel_have_one_point(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not accepts(monkeypatch, 0.01, ALONG)
