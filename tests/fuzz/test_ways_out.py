"""Depths of large spheres and capsules whose middle is in a prism: MuJoCo's may be wrong, and ours must be exact."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
import pytest

from simengine import load_model
from simengine.check.check import comparable
from simengine.check.oracle import Evaluation, Oracle
from simengine.check.solids import Hull, Round, solids
from simengine.check.solved import Listed, contacts
from simengine.check.states import Sampler
from simengine.check.trajectory import follow
from simengine.fuzz import nearest, read
from simengine.fuzz.judge import Outcome, judge
from simengine.fuzz.own_contacts import errors_after_steps
from simengine.fuzz.ways_out import least_way_out
from simengine.model.model import Model
from simengine.simulation import Simulation
from tests.helpers.checkout import ROOT

HUGE = read(ROOT / "tests" / "corpus" / "huge_capsule_in_prisms.xml")
BOUNDS = dict.fromkeys(nearest.NEAREST, 5e-5)
PRISM = """
<mujoco><asset><hfield name="block" nrow="2" ncol="2" size="0.5 0.5 0.4 0.3" elevation="1 0 0.5 1"/></asset>
<worldbody><geom type="hfield" hfield="block"/>
  <body pos="0.1 -0.2 -0.1" quat="1 2 3 4"><freejoint/><geom {}/></body></worldbody></mujoco>"""
KINDS = {"capsule": 'type="capsule" size="7 0.2"', "sphere": 'type="sphere" size="7"'}


def middle_of(kind: str) -> tuple[Hull, Round]:
    """The prism that holds the middle of a shape, and the shape."""
    mj = mujoco.MjModel.from_xml_string(PRISM.format(KINDS[kind]))
    data = mujoco.MjData(mj)
    mujoco.mj_forward(mj, data)
    (ball,) = solids(mj, data, 1, np.zeros(3))
    assert isinstance(ball, Round)
    (hull,) = (s for s in solids(mj, data, 0, ball.centre) if s.holds(ball.centre, 0.0))
    assert isinstance(hull, Hull)
    return hull, ball


@pytest.mark.parametrize("kind", KINDS)
def test_no_direction_has_less_than_the_least_way_out(kind: str) -> None:
    hull, ball = middle_of(kind)
    least = least_way_out(hull, ball)
    ways = np.random.default_rng(0).normal(size=(20_000, 3))
    ways /= np.linalg.norm(ways, axis=1, keepdims=True)
    sampled = min(hull.reach(way) + ball.reach(-way) for way in ways)
    assert least is not None
    assert 7 < least <= sampled <= least + 0.01
    away = Round(ball.kind, ball.size, ball.centre + np.array([0, 0, 3.0]), ball.axes)
    assert least_way_out(hull, away) is None
    cylinder = Round(int(mujoco.mjtGeom.mjGEOM_CYLINDER), ball.size, ball.centre, ball.axes)
    assert least_way_out(hull, cylinder) is None


def deep() -> tuple[Model, Oracle, dict[int, Evaluation], list[Listed]]:
    """States in which MuJoCo's depths of the capsule are wrong, and the engine's contacts."""
    model, _ = comparable(load_model(mujoco.MjModel.from_xml_string(HUGE.text)), HUGE.seed)
    oracle = Oracle(model.mj, "float64")
    sampler = Sampler(model.mj, HUGE.seed)
    found = (oracle.evaluate(sampler.random()) for _ in range(8))
    evaluations = {i: evaluation for i, evaluation in enumerate(found) if evaluation is not None}
    ours = dict(zip(evaluations, contacts(model, list(evaluations.values()), "host", "float64"), strict=True))
    wrong = [i for i, e in evaluations.items() if np.abs(ours[i].dist - e.fields["contact_dist"]).max() > 0.1]
    assert wrong
    return model, oracle, {i: evaluations[i] for i in wrong}, [ours[i] for i in wrong]


@pytest.mark.parametrize(
    ("changes", "excused"),
    [
        ({}, True),
        ({"dist": 1.01}, False),
        ({"dist": 0.99}, False),
        ({"dist": 1 + 1e-6}, False),
        ({"pos": 1.001}, False),
        ({"frame": 1.001}, False),
        ({"frame": -1.0}, False),
    ],
)
def test_only_the_least_way_is_excused(
    changes: dict[str, float], excused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, oracle, evaluations, listed = deep()
    changed = []
    for ours, evaluation in zip(listed, evaluations.values(), strict=True):
        off = np.abs(ours.dist - evaluation.fields["contact_dist"]) > 0.1
        fields = {name: np.array(getattr(ours, name)) for name in ("dist", "pos", "frame")}
        for name, factor in changes.items():
            fields[name][off] *= factor
        changed.append(Listed(ours.geoms, fields["dist"], fields["pos"], fields["frame"]))
    monkeypatch.setattr(nearest, "contacts", lambda *_: changed)
    found = nearest.as_near(model, oracle, evaluations, BOUNDS, "host", "float64")
    assert found == (set(evaluations) if excused else set())


def judged(text: str) -> Outcome:
    return judge(text, backend="host", dtypes=("float64",), states=8, seed=HUGE.seed)


@pytest.mark.parametrize("integrator", ["Euler", pytest.param("RK4", marks=pytest.mark.slow)])
def test_a_step_from_there_agrees_unless_it_is_wrong(integrator: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = HUGE.text.replace("<asset>", f'<option integrator="{integrator}"/><asset>')
    outcome = judged(text)
    assert outcome.kind == "agrees", outcome
    step = Simulation.step

    def wrong(sim: Simulation) -> None:
        step(sim)
        sim.set_state(qvel=np.asarray(sim.qvel) * 1.01)

    monkeypatch.setattr(Simulation, "step", wrong)
    assert "qvel in float64" in judged(text).fields


def test_depths_that_are_off_by_a_percent_are_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    listed = Simulation.contacts

    def wrong(sim: Simulation, world: int) -> Any:
        found = listed(sim, world)
        return found._replace(dist=np.asarray(found.dist) * 1.01)

    monkeypatch.setattr(Simulation, "contacts", wrong)
    assert "contact_dist in float64" in judged(HUGE.text).fields


@pytest.mark.parametrize("integrator", ["Euler", "implicitfast", "RK4"])
def test_steps_with_the_contacts_of_the_engine_are_its_own(integrator: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A box of 0.2 m that slides on a plane."""
    model = load_model(
        f'<mujoco><option integrator="{integrator}" tolerance="1e-12"/><worldbody><geom type="plane" size="3 3 1"/>'
        '<body pos="0 0 0.099"><freejoint/><geom type="box" size="0.1 0.15 0.1"/></body></worldbody></mujoco>'
    )
    oracle = Oracle(model.mj, "float64")
    steps = follow(oracle, Sampler(model.mj, 0), 4)
    start = {**steps.start(0), "qpos": np.array([0, 0, 0.099, 1, 0.001, 0.002, 0])}
    start |= {"qvel": np.array([0.5, -0.2, 0, 0, 0, 0.3]), "qacc_warmstart": np.zeros(6)}
    errors = errors_after_steps(model, oracle, {4: start}, BOUNDS, "host", "float64")
    assert errors.keys() == {("qpos", 4), ("qvel", 4), ("act", 4)}
    assert max(errors.values()) < 1e-8, errors
    monkeypatch.setattr(nearest, "_is_same", lambda *_: False)
    assert errors_after_steps(model, oracle, {4: start}, BOUNDS, "host", "float64") == {}, "contacts are not MuJoCo's"
