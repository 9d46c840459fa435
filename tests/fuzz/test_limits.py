"""What the fuzzer leaves out has no definite result, or MuJoCo's is wrong; and nothing beside it is left out."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from simengine import Simulation, load_model
from simengine.check.compare import forward_errors
from simengine.check.oracle import Evaluation, Oracle, collect
from simengine.check.states import Sampler
from simengine.fuzz import read
from simengine.fuzz.judge import judge
from simengine.fuzz.limits import is_sane, without_comparison
from simengine.model.numbers import fits
from tests.helpers.checkout import ROOT

BALL, SLIDE = '<joint type="ball" pos="0.05 0 0"/>', '<joint type="slide" axis="1 2 3"/>'
ARM = """
<mujoco><worldbody><body name="b">{}<geom size="0.1" pos="0.2 0.1 0"/>
  <body name="c" pos="0.3 0 0.2"><joint axis="1 0 1"/><geom size="0.1"/></body>
  <body name="d" pos="-0.3 0 0.2"><joint axis="0 1 1"/><geom size="0.1"/></body>
</body></worldbody><equality><connect {}/></equality></mujoco>"""
TO_WORLD, WITHIN = 'body1="c" anchor="0.1 0.1 0.1"', 'body1="c" body2="d" anchor="0.1 0.1 0.1"'


@pytest.mark.parametrize(
    ("joints", "held", "left_out"),
    [(BALL + SLIDE, TO_WORLD, True), (SLIDE + BALL, TO_WORLD, False), (BALL + SLIDE, WITHIN, False)],
)
def test_points_that_slide_after_a_ball_joint_are_left_out_where_mujocos_rate_is_not_that_of_its_jacobian(
    joints: str, held: str, left_out: bool
) -> None:
    mj = mujoco.MjModel.from_xml_string(ARM.format(joints, held))
    assert bool(without_comparison(mj)) == left_out
    data, rng = mujoco.MjData(mj), np.random.default_rng(0)
    mujoco.mj_integratePos(mj, data.qpos, rng.normal(size=mj.nv), 1.0)
    qpos, data.qvel[:] = data.qpos.copy(), rng.normal(size=mj.nv)
    mujoco.mj_forward(mj, data)
    aref, J = data.efc_aref.copy(), data.efc_J.reshape(3, mj.nv).copy()
    rows = []
    for step in (-1e-6, 1e-6):
        data.qpos[:] = qpos
        mujoco.mj_integratePos(mj, data.qpos, data.qvel, step)
        mujoco.mj_fwdPosition(mj, data)
        rows.append(data.efc_J.reshape(3, mj.nv) @ data.qvel)
    drift = (rows[1] - rows[0]) / 2e-6

    sim = Simulation(load_model(mj), num_worlds=1, backend="host", dtype="float64")
    still = {"qpos": qpos[None], "qvel": data.qvel[None]}
    sim.set_state(**still)
    sim.forward()
    assert np.allclose(sim.constraints(0).J, J, atol=1e-9)
    off = np.abs(np.asarray(sim.constraints(0).aref) - aref).max()
    assert (off > 0.1) == left_out, off
    wanted = aref if not left_out else aref + _missed(mj, data, qpos, drift)
    assert np.allclose(sim.constraints(0).aref, wanted, atol=1e-5)


def _missed(mj: mujoco.MjModel, data: mujoco.MjData, qpos: np.ndarray, drift: np.ndarray) -> np.ndarray:
    """By how much MuJoCo's rate of the Jacobian at the point of body c, times qvel, is more than `drift` (3,)."""
    data.qpos[:] = qpos
    mujoco.mj_fwdPosition(mj, data)
    body, rate = mj.body("c").id, np.zeros((3, mj.nv))
    point = data.xpos[body] + data.xmat[body].reshape(3, 3) @ mj.eq_data[0, :3]
    mujoco.mj_fwdVelocity(mj, data)
    mujoco.mj_jacDot(mj, data, rate, None, point, body)
    return np.asarray(rate @ data.qvel - drift)


def test_a_model_with_numbers_beyond_float32_is_compared_in_float64_alone() -> None:
    damped = '<mujoco><worldbody><body><joint axis="0.3 0.2 1" damping="{}"/><geom size="0.1" pos="0.1 0 0"/></body>'
    text = damped.format("1e300") + "</worldbody></mujoco>"
    large = load_model(text).table.arrays
    assert (fits(large, "float64"), fits(large, "float32")) == (True, False)
    assert fits(load_model(text.replace("1e300", "1e38")).table.arrays, "float32")
    usual = text.replace("1e300", "0.1")
    for model, dtype, compared in ((text, "float32", False), (usual, "float32", True), (usual, "float64", True)):
        outcome = judge(model, backend="host", dtypes=(dtype,), states=2, seed=0)
        assert (outcome.kind == "agrees") == compared, outcome
        assert (outcome.kind == "undecided") != compared, outcome


@pytest.mark.parametrize(("speed", "kept"), [(1.0, False), (0.02, True)])
def test_accelerations_by_rounded_centrifugal_forces_are_left_out(speed: float, kept: bool) -> None:
    """A ball spins 20 m from the com of its tree. Its light joint takes up what rounding leaves of large forces."""
    case = read(ROOT / "tests" / "corpus" / "fast_spin.xml")
    model = load_model(case.text)
    state = Sampler(model.mj, case.seed).random()
    state.qpos[:] = -2.236995697, -0.755966663, 20.0439873, 0.93440396, 0.07924458, -0.32756737, -0.11536544
    state.qvel[:] = speed * np.array([-0.025134, -0.04743896, 22.12368393, -9.45381641, -3.56058908, 1.07205141])
    state.qfrc_applied[:], state.xfrc_applied[:] = 0.0, 0.0
    oracle = Oracle(model.mj, "float32")
    oracle.forward(state)
    evaluation = Evaluation(state, collect(model.mj, oracle.data), oracle.touched())
    assert (is_sane(evaluation, "float64"), is_sane(evaluation, "float32")) == (True, kept)
    of_fields = forward_errors(model, oracle, [evaluation], "host", "float32")
    assert of_fields["qfrc_bias"][0][2] < 1e-5
    assert (of_fields["qacc_smooth"][0][2] < 0.02) == kept


INWARD = """
<mujoco><worldbody><geom type="box" size="0.1 0.1 0.1"/><body pos="0.05 0.02 0.12" quat="1 0.3 0.2 0.1"><freejoint/>
  <geom type="{}" size="0.06 0.15 0.1" gap="{}"/></body></worldbody></mujoco>"""


@pytest.mark.parametrize(("shape", "shifted"), [("cylinder", True), ("sphere", False)])
def test_negative_gaps_are_left_out_since_mujocos_distance_of_convex_shapes_depends_on_them(
    shape: str, shifted: bool
) -> None:
    theirs, ours = [], []
    for gap in (0.0, -0.02):
        mj = mujoco.MjModel.from_xml_string(INWARD.format(shape, gap))
        assert bool(without_comparison(mj)) == (gap < 0)
        data = mujoco.MjData(mj)
        mujoco.mj_forward(mj, data)
        theirs.append(float(data.contact.dist[0]))
        sim = Simulation(load_model(mj), num_worlds=1, backend="host", dtype="float64")
        sim.forward()
        ours.append(float(sim.contacts(0).dist[0]))
    assert ours[1] == pytest.approx(ours[0], abs=1e-6)
    assert ours[0] == pytest.approx(theirs[0], abs=1e-5)
    assert (theirs[0] - theirs[1] > 0.0199) == shifted


@pytest.mark.parametrize(("place", "kept"), [(9e8, False), (1e3, True)])
def test_places_that_float32_rounds_to_metres_are_left_out(place: float, kept: bool) -> None:
    mj = mujoco.MjModel.from_xml_string(
        '<mujoco><worldbody><body><joint type="slide" axis="1 0 0"/><geom size="0.1"/><body><joint axis="0 1 0"/>'
        '<geom type="capsule" size="0.05 0.3" pos="0 0 0.3"/></body></body></worldbody></mujoco>'
    )
    oracle, rest = Oracle(mj, "float32"), Sampler(mj, 0).random()
    state = rest._replace(qpos=np.array([place, 0.3]))
    oracle.forward(state)
    evaluation = Evaluation(state, collect(mj, oracle.data), oracle.touched())
    assert (is_sane(evaluation, "float64"), is_sane(evaluation, "float32")) == (True, kept)


@pytest.mark.parametrize(("joint", "left_out"), [("", True), ('<joint type="slide" axis="1 0 0"/>', False)])
def test_explicit_pairs_that_no_dof_moves_are_left_out_since_mujocos_adhesion_does_not_count_them(
    joint: str, left_out: bool
) -> None:
    """An adhesion actuator pulls at a mocap body, which a ball and maybe another body touch."""
    mocap = "" if joint else 'mocap="true"'
    mj = mujoco.MjModel.from_xml_string(f"""
<mujoco><worldbody><body name="m" mocap="true"><geom name="g" size="0.1"/></body>
  <body {mocap} pos="0.1 0 0">{joint}<geom name="h" size="0.1"/></body>
  <body pos="-0.1 0 0.1"><freejoint/><geom size="0.1"/></body></worldbody>
  <contact><pair geom1="g" geom2="h"/></contact><actuator><adhesion body="m" ctrlrange="0 1"/></actuator></mujoco>""")
    assert bool(without_comparison(mj)) == left_out
    data = mujoco.MjData(mj)
    mujoco.mj_forward(mj, data)
    assert data.ncon == 2
    with Simulation(load_model(mj), backend="host", dtype="float64") as sim:
        sim.forward()
        ours = np.linalg.norm(np.asarray(sim.field("actuator_moment")))
    assert ours == pytest.approx(np.linalg.norm(data.actuator_moment) * (0.5 if left_out else 1.0), rel=1e-6)


def test_constraint_forces_that_cancel_but_for_their_rounding_are_left_out_in_float32() -> None:
    """Two planes hold a box, each deep in it."""
    text = read(ROOT / "tests" / "corpus" / "between_two_planes.xml").text
    mj = mujoco.MjModel.from_xml_string(text)
    oracle, rest = Oracle(mj, "float32"), Sampler(mj, 3).random()
    qpos = (0.64170510, -0.19307062, -0.68614674, 0.28309178, -1.18317604, 0.55254120, 0.35659933, 0.04277245)
    oracle.forward(state := rest._replace(qpos=np.array([*qpos, -0.75213403, -0.57862866, -6.75028467])))
    fields = collect(mj, oracle.data)
    assert np.abs(fields["efc_force"]).max() > 1e5
    for part, kept in ((1.0, False), (1e-3, True)):
        changed = {**fields, "efc_force": part * fields["efc_force"], "qacc": np.ones(mj.nv)}
        evaluation = Evaluation(state, {**changed, "efc_aref": 0 * fields["efc_aref"]}, oracle.touched())
        assert (is_sane(evaluation, "float64"), is_sane(evaluation, "float32")) == (True, kept)


@pytest.mark.parametrize(("joint", "left_out"), [("", True), ('<joint axis="0 1 0"/>', False)])
def test_muscles_that_move_nothing_are_left_out_since_their_force_is_over_the_rounding_of_zero(
    joint: str, left_out: bool
) -> None:
    mj = mujoco.MjModel.from_xml_string(f"""
<mujoco><worldbody><body><joint axis="0 0 1"/><geom size="0.1"/><site name="s" pos="0.05 0 0.02" euler="20 30 10"/>
  <body pos="0.3 0.1 0.2">{joint}<geom size="0.1"/><site name="c" pos="0.1 0.1 0.1"/></body></body></worldbody>
  <actuator><muscle cranksite="c" slidersite="s" cranklength="0.6" lengthrange="-0.5 1.1"/></actuator></mujoco>""")
    assert (mj.actuator_acc0[0] < 1e-10) == left_out
    assert bool(without_comparison(mj)) == left_out


@pytest.mark.parametrize(("length", "left_out"), [(2e3, True), (5e2, False)])
def test_geoms_beyond_a_kilometre_are_left_out_since_searches_are_exact_to_a_part_of_their_size(
    length: float, left_out: bool
) -> None:
    text = f"""<mujoco><worldbody><geom type="plane" size="1e6 1e6 1"/>
      <body><freejoint/><geom type="cylinder" size="0.1 {length}"/></body></worldbody></mujoco>"""
    reason = without_comparison(mujoco.MjModel.from_xml_string(text))
    assert ("larger than a kilometre" in reason) == left_out
