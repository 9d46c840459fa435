"""What excuses a difference from MuJoCo must not excuse an error: rules hold where they should, and only there."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
import pytest

from simengine import load_model
from simengine.check.check import comparable
from simengine.check.fields import FORWARD
from simengine.check.oracle import Evaluation, Oracle, collect
from simengine.check.states import Sampler
from simengine.fuzz import read
from simengine.fuzz.judge import Outcome, judge
from simengine.fuzz.perturbed import Perturbed
from simengine.simulation import Simulation
from tests.helpers.checkout import ROOT

CORPUS = ROOT / "tests" / "corpus"
CORNERS = " ".join(f"{x} {y} {z}" for x in (-0.1, 0.1) for y in (-0.1, 0.12) for z in (-0.1, 0.1))
BLOCKS = f"""
<mujoco><option tolerance="1e-12"/><asset><mesh name="block" vertex="{CORNERS}"/></asset><worldbody>
  <geom type="mesh" mesh="block"/><geom type="plane" size="3 3 1" pos="0 0 -0.2"/>
  <body pos="0.02 0.01 0.198"><freejoint/><geom type="mesh" mesh="block"/></body>
</worldbody></mujoco>"""
"""A block on a block; at rest their faces are parallel."""


def tilted(angle: float) -> tuple[Oracle, Evaluation]:
    """The upper block turned by an angle, and MuJoCo's results."""
    mj = mujoco.MjModel.from_xml_string(BLOCKS)
    oracle, rest = Oracle(mj, "float32"), Sampler(mj, 0).random()
    qpos = np.array([0.02, 0.01, 0.198, 1, 0, 0, 0])
    mujoco.mju_axisAngle2Quat(qpos[3:], np.array([0.6, 0.8, 0.0]), angle)
    state = rest._replace(qpos=qpos.astype(np.float32).astype(np.float64))
    oracle.forward(state)
    return oracle, Evaluation(state, collect(mj, oracle.data), oracle.touched())


@pytest.mark.parametrize(("angle", "dtype", "steady"), [(0.1, "float32", True), (1e-6, "float32", False)])
def test_the_contacts_of_faces_depend_on_rounding_only_where_they_are_nearly_parallel(
    angle: float, dtype: str, steady: bool
) -> None:
    oracle, evaluation = tilted(angle)
    assert len(evaluation.fields["contact_pos"]) > 0
    changes = Perturbed(load_model(oracle.mj), oracle, dtype).of_forward(evaluation)
    assert (changes["contact_pos"] < 1e-4) == steady, changes["contact_pos"]
    assert changes["xpos"] < 1e-5
    assert changes["qM"] < 1e-5


def test_rounding_of_forces_counts_where_it_also_swaps_contacts() -> None:
    """An arm is caught in a height field with forces of 1e6 N. Contacts of neighbouring prisms are nearly the same, and
    noslip heeds their order; 1e7 N that cancel leave some newtons in float32."""
    case = read(CORPUS / "noslip_in_a_field.xml")
    model, _ = comparable(load_model(mujoco.MjModel.from_xml_string(case.text)), case.seed)
    oracle = Oracle(model.mj, "float32")
    for state in list(Sampler(model.mj, case.seed).settled(9))[5::2]:
        oracle.forward(state)
        evaluation = Evaluation(state, collect(oracle.mj, oracle.data), oracle.touched())
        assert np.abs(evaluation.fields["efc_force"]).max() > 1e6
        changes = Perturbed(model, oracle, "float32").of_forward(evaluation)
        assert 0.1 < changes["qacc"] < np.inf
        assert 0.01 < changes["efc_force"] < 1
        assert changes["efc_J"] < 1e-4


def test_parts_of_units_count_where_rolling_friction_is_the_last_to_remove_slip() -> None:
    """Edges of rolling friction differ by 1e-4 of what they have in common, and reference accelerations are 1,500. Half
    a unit of these in float32 moves what 1e6 N leave over by more than whole units do, which reach friction's bound."""
    case = read(CORPUS / "rolling_without_slip.xml")
    model, _ = comparable(load_model(mujoco.MjModel.from_xml_string(case.text)), case.seed)
    oracle, rest = Oracle(model.mj, "float32"), Sampler(model.mj, 0).random()
    at = np.array([2.67483664, -0.79134494, 1.20830262, 0.37097701, -7.41652346, 25.59033775, -0.76021355])
    speed = np.array([3.2e-07, -8.36e-05, 1.42290187, 0.924926698, -1.57689023, 14.998004, 3.48635507])
    state = rest._replace(qpos=at, qvel=speed, qfrc_applied=0 * at, xfrc_applied=0 * rest.xfrc_applied)
    oracle.forward(state)
    evaluation = Evaluation(state, collect(oracle.mj, oracle.data), oracle.touched())
    assert np.abs(evaluation.fields["efc_force"]).max() > 1e6
    changes = Perturbed(model, oracle, "float32").of_forward(evaluation)
    assert 1 < changes["qfrc_constraint"] < np.inf
    assert changes["efc_J"] < 1e-5


@pytest.mark.parametrize(("along", "steady"), [(0.1, True), (95.0, False)])
def test_rounding_of_inertia_about_a_com_counts_where_the_com_is_far(along: float, steady: bool) -> None:
    case = read(CORPUS / "far_along_a_slide.xml")
    model, _ = comparable(load_model(mujoco.MjModel.from_xml_string(case.text)), case.seed)
    found = {}
    for dtype in ("float32", "float64"):
        oracle, rest = Oracle(model.mj, dtype), Sampler(model.mj, 0).random()
        qpos = np.array([0.5, along, 0.25, 0.5, -0.25, 0.5, 0.25, 0.5])
        state = rest._replace(qpos=qpos, qvel=0 * rest.qvel)
        oracle.forward(state)
        evaluation = Evaluation(state, collect(oracle.mj, oracle.data), oracle.touched())
        found[dtype] = Perturbed(model, oracle, dtype).of_forward(evaluation)
    assert (found["float32"]["qacc_smooth"] < 1e-3) == steady, found["float32"]["qacc_smooth"]
    assert found["float32"]["xpos"] < 1e-5
    assert found["float64"]["qacc_smooth"] < 1e-6


@pytest.mark.parametrize("field", ["qacc", "qM"])
def test_wrong_dynamics_are_a_finding_where_a_com_is_near(field: str, monkeypatch: pytest.MonkeyPatch) -> None:
    near = read(CORPUS / "far_along_a_slide.xml").text.replace('range="-120 120"', 'range="-0.3 0.3"')
    near = near.replace('<joint type="slide" />', '<joint type="slide" range="-0.3 0.3" />')
    assert judged(near, "float32").kind == "agrees"
    forward = Simulation.forward

    def wrong(sim: Simulation) -> None:
        forward(sim)
        np.asarray(sim.field(field))[:] *= 1.2

    monkeypatch.setattr(Simulation, "forward", wrong)
    assert f"{field} in float32" in judged(near, "float32").fields


DEEP = """
<mujoco><worldbody><geom size="20 20 0.12" type="capsule"/><body><geom size="0.05 0.2"/><body pos="0 0 -0.2">
  <joint axis="0 -1 0"/><geom pos="0 0 -0.23" size="0.05 0.23" type="cylinder"/></body></body></worldbody></mujoco>"""
"""A cylinder lies 20 m deep in a capsule, where all ways out are nearly as short."""
SHALLOW = DEEP.replace("20 20 0.12", "0.2 0.3 0.12").replace("-0.23", "-0.21")


@pytest.mark.parametrize(("text", "least", "most"), [(DEEP, 1.0, np.inf), (SHALLOW, 0.0, 1e-6)])
def test_ends_of_searches_change_a_step_only_where_they_are_arbitrary(text: str, least: float, most: float) -> None:
    model, _ = comparable(load_model(text), 0)
    oracle = Oracle(model.mj, "float64")
    before = {"qpos": np.array([-0.0096]), "qvel": np.array([-1.96]), "qacc_warmstart": np.array([260.5])}
    change = Perturbed(model, oracle, "float64").of_step(before)
    assert least <= change["qvel"] <= most, change
    assert oracle.touched().ncon == 1
    assert model.mj.opt.ccd_iterations == comparable(load_model(text), 0)[0].mj.opt.ccd_iterations


SLIDING = """
<mujoco><option integrator="RK4" solver="PGS" cone="elliptic"/><worldbody><geom type="plane" size="3 3 1"/>
  <body pos="0 0 0.099"><joint type="slide" axis="1 0 0"/><joint type="slide"/><geom size="0.1"/></body></worldbody>
</mujoco>"""


@pytest.mark.parametrize("text", [SHALLOW, SLIDING], ids=["Euler", "RK4"])
def test_a_wrong_step_is_a_finding_also_at_the_optimum(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    step = Simulation.step

    def wrong(sim: Simulation) -> None:
        step(sim)
        sim.set_state(qvel=sim.qvel + 1e-3)

    monkeypatch.setattr(Simulation, "step", wrong)
    assert judged(text, "float64").fields.keys() == {"qvel in float64"}


@pytest.mark.parametrize("field", ["cacc", pytest.param("cfrc_ext", marks=pytest.mark.slow)])
def test_wrong_forces_between_bodies_are_a_finding_also_at_the_optimum(
    field: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    forward = Simulation.forward

    def wrong(sim: Simulation) -> None:
        forward(sim)
        np.asarray(sim.field(field))[:] *= 1.05

    monkeypatch.setattr(Simulation, "forward", wrong)
    outcome = judged(SHALLOW, "float64")
    assert outcome.fields.keys() == {f"{field} in float64"}
    assert not any("optimum" in reason for reason in outcome.explained)


def judged(text: str, dtype: str, seed: int = 0) -> Outcome:
    return judge(text, backend="host", dtypes=(dtype,), states=8, seed=seed)


@pytest.mark.parametrize("dtype", ["float64", pytest.param("float32", marks=pytest.mark.slow)])
def test_contacts_of_faces_in_the_wrong_place_are_a_finding(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert judged(BLOCKS, dtype).kind == "agrees"
    contacts = Simulation.contacts

    def wrong(sim: Simulation, world: int) -> Any:
        found = contacts(sim, world)
        return found._replace(pos=np.asarray(found.pos) + 0.01)

    monkeypatch.setattr(Simulation, "contacts", wrong)
    outcome = judged(BLOCKS, dtype)
    assert outcome.kind == "differs"
    assert list(outcome.fields) == [f"contact_pos in {dtype}"]


def test_a_result_that_is_no_number_is_a_finding_whatever_rounding_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    contacts = Simulation.contacts

    def wrong(sim: Simulation, world: int) -> Any:
        found = contacts(sim, world)
        return found._replace(frame=np.asarray(found.frame) * np.nan)

    monkeypatch.setattr(Simulation, "contacts", wrong)
    monkeypatch.setattr(Perturbed, "of_forward", lambda *_: dict.fromkeys((field.name for field in FORWARD), np.inf))
    outcome = judged(BLOCKS, "float64")
    assert outcome.fields == {"contact_frame in float64": np.inf}


@pytest.mark.slow
@pytest.mark.parametrize("field", ["dist", "frame"])
def test_wrong_contacts_are_a_finding_also_where_their_points_are_arbitrary(
    field: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = read(CORPUS / "cylinder_along_walls.xml")
    assert judged(case.text, "float64", case.seed).kind == "agrees"
    contacts = Simulation.contacts

    def wrong(sim: Simulation, world: int) -> Any:
        found = contacts(sim, world)
        return found._replace(**{field: np.asarray(getattr(found, field)) * 1.01})

    monkeypatch.setattr(Simulation, "contacts", wrong)
    outcome = judged(case.text, "float64", case.seed)
    assert outcome.kind == "differs"
    assert f"contact_{field} in float64" in outcome.fields


@pytest.mark.parametrize(
    "name",
    [
        "pgs_elliptic",
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in ("tied_sides", "order_of_contacts", "cylinder_along_walls")
        ),
    ],
)
def test_wrong_forces_are_a_finding_also_where_sweeps_end_early(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case = read(CORPUS / f"{name}.xml")
    forward = Simulation.forward

    def wrong(sim: Simulation) -> None:
        forward(sim)
        np.asarray(sim.field("qacc"))[:] *= 1.05

    monkeypatch.setattr(Simulation, "forward", wrong)
    outcome = judged(case.text, "float64", case.seed)
    assert outcome.kind == "differs"
    assert "qacc in float64" in outcome.fields
