"""Contacts that are as near as MuJoCo's by the shapes themselves are excused, and none that are not."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from simengine import load_model
from simengine.check.check import comparable
from simengine.check.oracle import Evaluation, Oracle, collect
from simengine.check.solids import Round, solids
from simengine.check.solved import Listed, contacts
from simengine.check.states import Sampler
from simengine.fuzz import nearest
from simengine.fuzz.limits import too_many_sweeps

SHAPES = {
    "sphere": 'type="sphere" size="0.2"',
    "capsule": 'type="capsule" size="0.1 0.2"',
    "cylinder": 'type="cylinder" size="0.1 0.2"',
    "ellipsoid": 'type="ellipsoid" size="0.1 0.2 0.15"',
    "box": 'type="box" size="0.1 0.2 0.15"',
    "mesh": 'type="mesh" mesh="wedge"',
}
WALL = """
<mujoco><asset><hfield name="block" nrow="2" ncol="2" size="1 1 1 0.5"/>
  <mesh name="wedge" vertex="0 0 0 0.3 0 0 0 0.4 0 0.1 0.1 0.5 0.3 0.2 0.1"/></asset>
<worldbody><geom type="hfield" hfield="block"/>
  <body pos="1.05 -0.3 -0.2"><freejoint/><geom {}/></body></worldbody></mujoco>"""


def beside(shape: str, height: float = 1.0) -> tuple[Oracle, Evaluation]:
    """A shape at the wall x = 1 of a height field, and MuJoCo's results."""
    mj = mujoco.MjModel.from_xml_string(WALL.format(SHAPES[shape]))
    mj.hfield_data[:] = height
    oracle, rest = Oracle(mj, "float64"), Sampler(mj, 0).random()
    state = rest._replace(qpos=mj.qpos0)
    oracle.forward(state)
    return oracle, Evaluation(state, collect(mj, oracle.data), oracle.touched())


TURN = np.array([[np.cos(0.01), -np.sin(0.01), 0], [np.sin(0.01), np.cos(0.01), 0], [0, 0, 1.0]])


@pytest.mark.parametrize(
    ("change", "excused"),
    [
        ({"pos": np.array([0, 0, 0.03])}, True),  # along the line in which the cylinder touches the wall
        ({"pos": np.array([0, 0, 0.5])}, False),  # beyond its end
        ({"pos": np.array([0, 0.001, 0])}, False),
        ({"pos": np.array([0.001, 0, 0])}, False),
        ({"pos": np.array([0, 0, 0.03]), "dist": 1e-4}, False),
        ({"pos": np.array([0, 0, 0.03]), "turn": TURN}, False),
    ],
)
def test_a_cylinder_at_a_wall_touches_it_anywhere_along_a_line(
    change: dict[str, np.ndarray], excused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    oracle, evaluation = beside("cylinder")
    fields = evaluation.fields
    assert len(fields["contact_dist"]) == 1
    np.testing.assert_allclose(fields["contact_dist"], -0.05, atol=1e-9)
    frame = nearest._frame(change.get("turn", np.eye(3)) @ fields["contact_frame"].reshape(3, 3)[0])
    middle = np.array([0.975, -0.3, -0.2])  # of that line, and of the depth
    assert np.abs(fields["contact_pos"] - middle - change["pos"]).max() > 1e-3, "it is not MuJoCo's own point"
    pos, dist = (middle + change["pos"])[None], fields["contact_dist"] + change.get("dist", 0.0)
    ours = Listed([(0, 1)], dist, pos, frame[None])
    monkeypatch.setattr(nearest, "contacts", lambda *_: [ours])
    bounds = {"contact_pos": 5e-5, "contact_frame": 5e-5}
    found = nearest.as_near(load_model(oracle.mj), oracle, {3: evaluation}, bounds, "host", "float64")
    assert found == ({3} if excused else set())


ROD = """
<mujoco><option><flag multiccd="disable"/></option><worldbody><geom type="box" size="1 1 0.1"/>
  <body><freejoint/><geom type="cylinder" size="0.05 0.2"/></body></worldbody></mujoco>"""


@pytest.mark.parametrize(
    ("tilt", "moved", "excused"),
    [
        (3e-7, (0.0, 0.0, 0.0), True),
        (3e-7, (0.1, 0.0, 0.0), True),
        (3e-7, (0.0, 0.01, 0.0), False),
        (3e-7, (0.0, 0.0, 0.01), False),
        (1e-3, (0.1, 0.0, 0.0), False),
    ],
)
def test_a_place_along_a_line_is_as_near_if_the_precision_cannot_tell_its_tilt(
    tilt: float, moved: tuple[float, ...], excused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    mj = mujoco.MjModel.from_xml_string(ROD)
    oracle, rest = Oracle(mj, "float32"), Sampler(mj, 0).random()
    half = 0.25 * np.pi + 0.5 * tilt
    oracle.forward(state := rest._replace(qpos=np.array([0, 0, 0.149, np.cos(half), 0, np.sin(half), 0])))
    evaluation = Evaluation(state, collect(mj, oracle.data), oracle.touched())
    dist, pos, frame = (evaluation.fields[f"contact_{name}"] for name in ("dist", "pos", "frame"))
    inwards = (-np.sign(pos[0, 0]), 1.0, 1.0)
    pairs = [(1, 0)]  # the cylinder's type is the lower one
    ours = Listed(pairs, dist, pos + np.multiply(moved, inwards), frame.reshape(1, 3, 3))
    monkeypatch.setattr(nearest, "contacts", lambda *_: [ours])
    found = nearest.as_near(load_model(mj), oracle, {3: evaluation}, {"contact_pos": 2.5e-3}, "host", "float32")
    assert found == ({3} if excused else set())


@pytest.mark.parametrize("shape", SHAPES)
def test_shapes_reach_as_far_as_their_points_and_hold_these(shape: str) -> None:
    """Points are those where rays of MuJoCo from the inside leave the shape."""
    oracle, _ = beside(shape)
    mj, data, rng = oracle.mj, oracle.data, np.random.default_rng(0)
    (solid,) = solids(mj, data, 1, np.zeros(3))
    inside = np.array(data.geom_xpos[1])
    ways = rng.normal(size=(400, 3))
    ways /= np.linalg.norm(ways, axis=1, keepdims=True)
    far = [mujoco.mj_ray(mj, data, inside + 2 * way, -way, None, 0, 0, np.zeros(1, np.int32)) for way in ways]
    points = inside + (2 - np.array(far))[:, None] * ways
    assert all(solid.holds(point, 1e-6) for point in points)
    assert not any(solid.holds(point + 1e-3 * way, 1e-6) for point, way in zip(points, ways, strict=True))
    for way in ways[:40]:
        assert (points @ way).max() <= solid.reach(way) + 1e-6
        assert solid.reach(way) <= (points @ way).max() + 0.12


def test_prisms_hold_the_points_of_their_field() -> None:
    oracle, _ = beside("sphere", 0.4)
    inside, outside = np.array([0.3, 0.1, 0.39]), np.array([0.3, 0.1, 0.41])
    assert any(solid.holds(inside, 0.0) for solid in solids(oracle.mj, oracle.data, 0, inside))
    assert not any(solid.holds(outside, 0.0) for solid in solids(oracle.mj, oracle.data, 0, outside))
    assert {round(s.reach(np.array([0, 0, 1.0])), 6) for s in solids(oracle.mj, oracle.data, 0, inside)} == {0.4}


def test_models_whose_sweeps_take_minutes_are_not_compared() -> None:
    body = '<body pos="{} 0 0"><joint type="slide" axis="0 0 1"/><geom type="box" size="0.1 0.1 0.3"/></body>'
    many = "".join(body.format(k) for k in range(25))
    start = '<mujoco><option solver="{}" cone="elliptic"/><default><geom condim="6"/></default><worldbody>'
    text, plane = f"{start}{{}}</worldbody></mujoco>", '<geom type="plane" size="1 1 1"/>'
    for solver, bodies, slow in (("PGS", many, True), ("Newton", many, False), ("PGS", body.format(0), False)):
        mj = mujoco.MjModel.from_xml_string(text.format(solver, plane + bodies))
        assert bool(too_many_sweeps(mj)) == slow, (solver, slow)


DEEP = """
<mujoco><option ccd_tolerance="1e-12" ccd_iterations="500"/><worldbody>
  <body pos="-0.11125411429198503 -0.21186286118302189 -0.0083249572101299629"
    quat="0.63636717919789965 -0.46917125228094303 -0.13883809459525778 0.59635487150018174">
    <freejoint/><geom type="ellipsoid" size="0.09 0.06 0.12"/></body>
  <body pos="-0.086070371399741025 -0.068091836851742749 0.032583969529911577"
    quat="0.60564472668922165 -0.69476713638818477 0.29399514471263122 -0.25310066399339842">
    <freejoint/><geom type="box" size="0.05 0.07 0.12"/></body></worldbody></mujoco>"""
"""An ellipsoid in a box, with two ways out whose lengths differ by six parts in a hundred thousand."""
OTHER_WAY = np.array([-0.5352424, 0.8443391, -0.0246402])


def turned(normal: np.ndarray, angle: float) -> np.ndarray:
    """A unit vector (3,), turned by an angle [rad] towards one of its sides."""
    return np.cos(angle) * normal + np.sin(angle) * nearest._frame(normal)[1]


@pytest.mark.parametrize(
    ("dtype", "angle", "scale", "excused"),
    [
        ("float32", 0.0, 1.0, True),
        ("float64", 0.0, 1.0, False),
        ("float32", 0.01, 1.0, False),  # a normal that is off by one percent, with the depth along it
        ("float32", -0.01, 1.0, False),
        ("float32", 0.0, 1.01, False),  # a depth that is
        ("float32", 0.0, 0.99, False),
    ],
)
def test_another_way_out_that_is_nearly_as_short_is_as_near_in_float32_if_it_is_the_shortest_around(
    dtype: str, angle: float, scale: float, excused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    mj = mujoco.MjModel.from_xml_string(DEEP)
    oracle, rest = Oracle(mj, "float64"), Sampler(mj, 0).random()
    state = rest._replace(qpos=mj.qpos0)
    oracle.forward(state)
    evaluation = Evaluation(state, collect(mj, oracle.data), oracle.touched())
    ellipsoid, box = (next(iter(solids(mj, oracle.data, geom, np.zeros(3)))) for geom in (0, 1))
    assert isinstance(ellipsoid, Round)

    def depth(normal: np.ndarray) -> float:
        return ellipsoid.reach(normal) + box.reach(-normal)

    normal = turned(OTHER_WAY / np.linalg.norm(OTHER_WAY), angle)
    dist = -depth(normal) * scale
    assert normal @ evaluation.fields["contact_frame"][0, :3] < 0.98
    inner = (
        ellipsoid.axes
        @ (ellipsoid.size**2 * (normal @ ellipsoid.axes))
        / np.linalg.norm(ellipsoid.size * (normal @ ellipsoid.axes))
    )
    pos = ellipsoid.centre + inner + dist / 2 * normal  # half of the way from the ellipsoid's farthest point
    ours = Listed([(0, 1)], np.array([dist]), pos[None], nearest._frame(normal)[None])
    monkeypatch.setattr(nearest, "contacts", lambda *_: [ours])
    found = nearest.as_near(load_model(mj), oracle, {3: evaluation}, {"contact_frame": 2.5e-3}, "host", dtype)
    assert found == ({3} if excused else set())


IN_A_PRISM = """<mujoco>
  <asset><hfield name="hills" nrow="6" ncol="6" size="1 1 0.3 0.2" elevation="0.2 0.1 1 0.5 0.4 0.3 0.1 0.4 0.1 0 0.5
    0.1 0.5 0.8 0.1 0.1 1 0 0.2 0.3 0.5 0.1 0.9 0.1 0.8 0.3 0.3 0.2 0.9 0.7 0.3 0.2 0.7 0.4 0.1 0.8"/></asset>
  <worldbody><geom type="hfield" hfield="hills" pos="0.0137 -0.0071 -0.3"/>
    <body pos="-0.152398350659547 -0.22676125555602775 -0.4562934096237412"
      quat="0.5168336757668672 0.22592369349240557 0.21904719531618694 -0.7961531024471177">
      <freejoint/><geom type="ellipsoid" size="0.1 0.07 0.08"/></body></worldbody></mujoco>"""
"""An ellipsoid in a height field. Two ways out of one prism differ by a part of 1.4e-6."""
SECOND_WAY = 2


@pytest.mark.parametrize(
    ("angle", "scale", "excused"), [(0.0, 1.0, True), (0.01, 1.0, False), (0.0, 1.01, False), (0.0, 0.99, False)]
)
def test_a_way_out_of_a_prism_that_is_longer_by_a_millionth_is_as_near(
    angle: float, scale: float, excused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, _ = comparable(load_model(mujoco.MjModel.from_xml_string(IN_A_PRISM)), 0)
    oracle, rest = Oracle(model.mj, "float64"), Sampler(model.mj, 0).random()
    state = rest._replace(qpos=model.mj.qpos0)
    oracle.forward(state)
    evaluation = Evaluation(state, collect(model.mj, oracle.data), oracle.touched())
    found = contacts(model, [evaluation], "host", "float64")[0]
    dist, frame = found.dist.copy(), found.frame.copy()
    assert 1e-7 < evaluation.fields["contact_dist"][SECOND_WAY] - dist[SECOND_WAY] < 2e-7
    dist[SECOND_WAY] *= scale
    frame[SECOND_WAY] = nearest._frame(turned(frame[SECOND_WAY, 0], angle))
    ours = found._replace(dist=dist, frame=frame)
    monkeypatch.setattr(nearest, "contacts", lambda *_: [ours])
    bounds = {"contact_frame": 5e-5}
    assert nearest.as_near(model, oracle, {3: evaluation}, bounds, "host", "float64") == ({3} if excused else set())
