"""States in which rounding decides what touches are no difference, and are counted; starts at a margin are named."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from simengine import Simulation, check_model, load_model
from simengine.check.chosen import Chosen, find_contacts
from simengine.check.edges import knife_edges

ON_BOX = """<mujoco><worldbody><geom type="box" size="0.3 0.3 0.1"/>
  <body pos="0 0 0.15"><freejoint/><geom type="{}" mass="1"/></body></worldbody></mujoco>"""
SCENES = {
    "a capsule on a box": ON_BOX.format('capsule" size="0.05 0.15" euler="90 0 0'),
    "a cap on a box": ON_BOX.format('cylinder" size="0.1 0.05'),
    "a cylinder that stands": """<mujoco><worldbody><geom type="plane" size="1 1 1"/>
      <body pos="0 0 0.06"><freejoint/><geom type="cylinder" size="0.1 0.06"/></body></worldbody></mujoco>""",
}


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("dtype", [pytest.param("float64", marks=pytest.mark.slow), "float32"])
@pytest.mark.parametrize("scene", SCENES)
def test_what_rounding_chooses_is_no_difference(scene: str, dtype: str, seed: int) -> None:
    report = check_model(SCENES[scene], backend="host", dtype=dtype, num_states=80, num_steps=150, seed=seed)
    assert report.passed, report.verdict()
    assert report.coverage.by_rounding <= report.coverage.left_out < 80 / 2


def test_the_share_that_rounding_decides_is_said() -> None:
    report = check_model(SCENES["a cap on a box"], backend="host", num_states=80, num_steps=150, seed=1)
    states, steps = report.share_left_out
    assert report.coverage.by_rounding > 0
    assert states == report.coverage.left_out / (report.coverage.left_out + report.coverage.num_states) > 0
    assert f"{100 * states:.2g} % of the states and {100 * steps:.2g} % of the steps" in report.verdict()


@pytest.mark.parametrize("shape", ['type="sphere" size="0.1"', 'type="capsule" size="0.1 0.2"'])
@pytest.mark.parametrize("offset", [0.0, 1e-12, 1e-3])
def test_the_normal_of_spheres_with_one_centre_is_not_decided(shape: str, offset: float) -> None:
    mj = mujoco.MjModel.from_xml_string(
        f'<mujoco><worldbody><geom type="capsule" size="0.05 1"/><body pos="{offset} 0 0.1"><joint type="slide"/>'
        f"<geom {shape}/></body></worldbody></mujoco>"
    )
    data = mujoco.MjData(mj)
    mujoco.mj_fwdPosition(mj, data)
    assert data.ncon
    assert Chosen(mj, "float64").are_decided(mj, data) == (offset == 1e-3)


def test_the_normal_of_capsules_whose_axes_cross_is_decided() -> None:
    mj = mujoco.MjModel.from_xml_string(
        '<mujoco><worldbody><geom type="capsule" size="0.05 1"/><body euler="0 70 0"><joint type="slide"/>'
        '<geom type="capsule" size="0.1 1"/></body></worldbody></mujoco>'
    )
    data = mujoco.MjData(mj)
    mujoco.mj_fwdPosition(mj, data)
    assert data.contact.dist[0] == pytest.approx(-0.15)
    assert Chosen(mj, "float32").are_decided(mj, data)


def prism(seed: int) -> str:
    """Vertices of a prism on an irregular base, as text."""
    angle = np.sort(np.random.default_rng(seed).uniform(0, 2 * np.pi, 8))
    base = np.column_stack([0.12 * np.cos(angle), 0.09 * np.sin(angle)])
    return " ".join(f"{x:.6f} {y:.6f} {z}" for z in (-0.05, 0.05) for x, y in base)


def test_contacts_that_mujoco_lists_twice_are_not_decided() -> None:
    """MuJoCo's search for four corners may end with three of them."""
    meshes = "".join(f'<mesh name="m{seed}" vertex="{prism(seed)}"/>' for seed in (0, 1))
    mj = mujoco.MjModel.from_xml_string(
        f'<mujoco><asset>{meshes}</asset><worldbody><geom type="mesh" mesh="m0"/>'
        '<body><freejoint/><geom type="mesh" mesh="m1" mass="1"/></body></worldbody></mujoco>'
    )
    chosen, data, rng, copies = Chosen(mj, "float64"), mujoco.MjData(mj), np.random.default_rng(0), 0
    for _ in range(300):
        data.qpos[:3] = *rng.uniform(-0.15, 0.15, 2), 0.0995
        mujoco.mju_euler2Quat(data.qpos[3:], np.array([0, 0, rng.uniform(-3, 3)]), "XYZ")
        mujoco.mj_fwdPosition(mj, data)
        pos = data.contact.pos.copy()
        if len(pos) == 4 and len(np.unique(np.round(pos, 9), axis=0)) < 4:
            copies += 1
            assert not chosen.are_decided(mj, data)
    assert copies > 3


def test_pairs_at_their_margin_where_a_model_starts_are_named() -> None:
    text = """<mujoco><worldbody><geom name="floor" type="plane" size="1 1 1"/>
      <body><joint type="slide" axis="0 0 1"/><geom name="ball" size="0.1" margin="{}"/></body></worldbody>
      <keyframe><key name="home" qpos="{}"/><key qpos="0.3"/></keyframe></mujoco>"""
    touches = mujoco.MjModel.from_xml_string(text.format(0.0, 0.1))
    assert knife_edges(touches) == ("geom 'floor' and geom 'ball' in keyframe 'home'",)
    within = mujoco.MjModel.from_xml_string(text.format(0.01, 0.11))
    assert knife_edges(within) == ("geom 'floor' and geom 'ball' in keyframe 'home'",)
    assert knife_edges(mujoco.MjModel.from_xml_string(text.format(0.01, 0.1))) == ()
    report = check_model(touches, backend="host", num_states=4, num_steps=4)
    assert report.knife_edges == knife_edges(touches)


def test_the_models_own_budget_is_compared_too() -> None:
    """With one iteration MuJoCo stops short of the optimum, and the engine at about the same point."""
    text = """<mujoco><option iterations="{}" solver="{}"/><worldbody><geom type="plane" size="1 1 1"/>
      <body pos="0 0 0.1"><freejoint/><geom type="box" size="0.1 0.1 0.1"/></body></worldbody></mujoco>"""
    short = check_model(text.format(1, "PGS"), backend="host", dtype="float64", num_states=30, num_steps=20)
    assert short.passed
    assert [result.field for result in short.budget] == ["qacc", "qfrc_constraint"]
    for result in short.budget:
        assert result.states == short.coverage.num_states
        assert result.unfinished > 0.01
        assert result.relative < 1e-6
        assert result.beyond == 0
    for result in check_model(text.format(100, "Newton"), backend="host", dtype="float64", num_states=30).budget:
        assert result.unfinished < 1e-5


# A cap that is 0.6 mrad from an edge of a box, with which it would touch as deeply but for 25 nm.
BESIDE_AN_EDGE = """<mujoco><worldbody><geom type="box" size="0.14 0.1 0.05"/><body><freejoint/>
  <geom type="cylinder" size="0.07 0.11"/></body></worldbody></mujoco>"""
POSE = (0.086084354, 0.055510911, 0.053830867, 0.722034573, -0.032810654, 0.0317019, 0.690351016)


def test_whether_an_edge_or_a_cap_touches_is_decided_in_double_precision_only() -> None:
    """Along the cap's normal, the line on the cylinder's side may be anywhere around it, and one contact is left."""
    mj, numbers = mujoco.MjModel.from_xml_string(BESIDE_AN_EDGE), []
    data = mujoco.MjData(mj)
    data.qpos[:] = POSE
    find_contacts(mj, data)
    pair = tuple(data.contact.geom[0].tolist())
    for dtype, on_a_cap in (("float64", False), ("float32", True)):
        chosen = Chosen(mj, dtype)
        chosen._find_single(data)
        assert chosen._on_a_cap({pair: 2}) == on_a_cap
        with Simulation(load_model(mj), backend="host", dtype=dtype) as sim:
            sim.set_state(qpos=np.array([POSE]))
            sim.forward()
            numbers.append(len(sim.contacts(0).dist))
    assert numbers == [2, 1]
