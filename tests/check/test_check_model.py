"""`check_model` on supported models, on models whose table was changed after loading, and on refused models."""

from __future__ import annotations

from collections import Counter
from typing import Any

import mujoco
import numpy as np
import pytest

from simengine import (
    BackendError,
    CheckReport,
    Model,
    UnsupportedModelError,
    available_backends,
    check_model,
    load_model,
)
from simengine.check.compare import world_errors
from simengine.check.fields import FORWARD, STEPPED
from simengine.check.optimal import are_optimal
from simengine.check.oracle import Evaluation, Oracle, Touched
from simengine.check.states import Sampler
from simengine.state.fields import FIELD, entry_shape
from tests.model.features import FEATURES, TOGETHER, model_with
from tests.models import OWN, gymnasium_path

needs_host = pytest.mark.skipif(bool(available_backends()["host"]), reason="needs a C++ compiler")
GYMNASIUM = {
    "ant": {"plane-capsule", "plane-sphere"},
    "half_cheetah": {"plane-capsule"},
    "hopper": {"plane-capsule", "capsule-capsule"},
    "walker2d": {"plane-capsule"},
    "reacher": set(),
    "inverted_pendulum": set(),
    "inverted_double_pendulum": set(),
}
OUT_OF_REACH = """
<mujoco>
  <worldbody>
    <geom type="plane" size="1 1 1"/>
    <body pos="0 0 1">
      <joint name="a" type="slide" axis="0 0 1" range="-0.2 0.2" limited="true"/><geom size=".1"/>
    </body>
    <body pos="3 0 1"><freejoint/><geom size=".1" contype="2" conaffinity="1"/></body>
  </worldbody>
</mujoco>
"""
PENDULUM = """
<mujoco><worldbody><body><joint axis="0 1 0" range="-40 40" limited="true"/><geom size=".1" pos="0 0 -1"/></body>
</worldbody></mujoco>"""
QUICK = ("actuators", "contact_parameters", "crates", "ragdoll", "ropes")
"""Models that are compared each time; the others in the second stage."""


def assert_complete(report: CheckReport, model: Model) -> None:
    """Every field was compared, wherever it has entries, in states that the report accounts for."""

    def has_entries(name: str) -> bool:
        return 0 not in entry_shape(FIELD[name], model.table.sizes)

    assert [r.field for r in report.fields] == [f.name for f in (*FORWARD, *STEPPED)]
    for result, field in zip(report.fields, FORWARD, strict=False):
        if field.space == "world" or field.name in ("contact_geom", "nefc"):
            expected = has_entries(field.name) if field.space == "world" else True
            assert result.states == report.coverage.num_states * expected, result
        else:
            entries = report.coverage.contacts if field.space == "contact" else report.coverage.rows
            assert (result.states > 0) == (entries > 0), result
            assert result.states < report.coverage.num_states, result
    for result in report.fields[-len(STEPPED) :]:
        assert result.states == report.trajectory.steps * has_entries(result.field), result


@needs_host
@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        *(
            pytest.param(name, "float32", marks=() if name in ("ant", "half_cheetah") else pytest.mark.slow)
            for name in GYMNASIUM
        ),
        pytest.param("ant", "float64", marks=pytest.mark.slow),
        ("hopper", "float64"),
    ],
)
def test_gymnasium_models_agree(name: str, dtype: str) -> None:
    report = check_model(gymnasium_path(name), backend="host", dtype=dtype, num_steps=300)
    assert report.passed, report.verdict()
    assert report.failures == ()
    assert_complete(report, load_model(gymnasium_path(name)))
    seen = report.coverage
    assert set(seen.pairs) == GYMNASIUM[name]
    assert all(count > 0 for count in seen.pairs.values())
    assert seen.limits == seen.limits_total > 0
    assert seen.unreached == ()
    assert seen.num_states + seen.left_out >= 200
    assert seen.left_out < 20
    assert report.trajectory.steps + report.trajectory.left_out == 300
    assert report.trajectory.rows > 0


@needs_host
@pytest.mark.parametrize("name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in OWN])
def test_own_models_agree_in_float64(name: str) -> None:
    report = check_model(OWN[name], backend="host", dtype="float64", num_states=80, num_steps=100)
    assert report.passed, report.verdict()
    assert report.coverage.rows > 0


@pytest.mark.slow
@needs_host
@pytest.mark.parametrize("name", ["humanoid", "humanoidstandup", "swimmer", "pusher", "pusher_v5", "point"])
def test_the_rest_of_gymnasiums_models_agree(name: str) -> None:
    report = check_model(gymnasium_path(name), backend="host", dtype="float32", num_states=60, num_steps=60)
    assert report.passed, report.verdict()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ant", "half_cheetah", "hopper"])
def test_jax_agrees(name: str) -> None:
    report = check_model(gymnasium_path(name), backend="jax", dtype="float64", num_states=60, num_steps=100)
    assert report.backend == "jax"
    assert report.passed, report.verdict()
    assert_complete(report, load_model(gymnasium_path(name)))


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", ["ant", "half_cheetah", "hopper"])
def test_cuda_agrees(name: str, dtype: str) -> None:
    report = check_model(gymnasium_path(name), backend="cuda", dtype=dtype)
    assert report.backend == "cuda"
    assert report.passed, report.verdict()


def test_jax_agrees_on_a_small_model() -> None:
    report = check_model(PENDULUM, backend="jax", num_states=20, num_steps=20)
    assert (report.backend, report.dtype) == ("jax", "float32")
    assert report.passed, report.verdict()


def changed(name: str, field: str, factor: float, term: float = 0.0) -> Model:
    """A model whose table differs from MuJoCo's model in one field."""
    model = load_model(gymnasium_path(name))
    model.table.arrays[field] = model.table.arrays[field] * factor + term
    return model


@needs_host
@pytest.mark.parametrize(
    ("name", "field", "factor", "stage", "first"),
    [
        ("ant", "body_pos", 1.001, "kinematics", "xpos"),
        ("ant", "body_mass", 1.001, "com_pos", "subtree_com"),
        ("ant", "body_inertia", 1.001, "com_pos", "cinert"),
        ("ant", "dof_armature", 1.001, "crb", "qM"),
        ("ant", "dof_damping", 1.001, "passive", "qfrc_passive"),
        ("ant", "opt_gravity", 1.001, "rne", "qfrc_bias"),
        ("ant", "moment", 1.001, "actuation", "qfrc_actuator"),
        ("ant", "cand_friction", 1.01, "constraint", "efc_J"),
        ("ant", "dof_invweight0", 1.01, "constraint", "efc_D"),
        ("half_cheetah", "jnt_range", 1.01, "constraint", "nefc"),
        ("hopper", "geom_size", 1.001, "narrowphase", "contact_dist"),
        ("hopper", "cand_solref", 1.01, "constraint", "efc_aref"),
        ("hopper", "opt_timestep", 1.01, "step", "qpos"),
    ],
)
def test_a_changed_table_is_found_at_its_stage(name: str, field: str, factor: float, stage: str, first: str) -> None:
    report = check_model(changed(name, field, factor), backend="host", dtype="float64", num_states=20, num_steps=20)
    assert not report.passed
    assert (report.failures[0].stage, report.failures[0].field) == (stage, first), report.verdict()
    assert first in report.verdict()
    assert "DIFFERS" in report.verdict()
    # Rounding does not explain it.
    assert report.failures[0].rounding is not None
    assert report.failures[0].rounding < 0.1 * report.failures[0].relative


@needs_host
@pytest.mark.parametrize(("field", "first"), [("dof_invweight0", "efc_D"), ("opt_gravity", "qfrc_bias")])
def test_rounding_hides_no_small_change_in_float32(field: str, first: str) -> None:
    report = check_model(changed("walker2d", field, 1.001), backend="host", num_states=60, num_steps=60)
    assert report.failures[0].field == first, report.verdict()


@needs_host
@pytest.mark.parametrize("seed", [1, 4])
def test_ill_conditioned_states_are_no_difference(seed: int) -> None:
    """In these states one unit in the last place of float32 moves MuJoCo's own efc_D by most of the tolerance."""
    report = check_model(gymnasium_path("walker2d"), backend="host", num_steps=100, seed=seed)
    assert report.passed, report.verdict()
    assert sum(result.ill_conditioned for result in report.fields) <= 10


@needs_host
def test_contacts_that_only_one_engine_lists_fail() -> None:
    report = check_model(changed("ant", "cand_margin", 1.0, 0.02), backend="host", num_states=60, num_steps=60)
    first = report.failures[0]
    assert (first.field, first.stage) == ("contact_geom", "narrowphase")
    assert first.absolute >= 1
    distances = next(r for r in report.fields if r.field == "contact_dist")
    assert 0 < distances.states < report.coverage.num_states  # compared where both list the same


@needs_host
def test_numbers_that_are_none_fail() -> None:
    report = check_model(changed("hopper", "opt_gravity", np.nan), backend="host", num_states=20, num_steps=20)
    assert "qfrc_bias" in [result.field for result in report.failures]
    assert all(np.isinf(r.relative) for r in report.failures if r.field in ("qfrc_bias", "qacc"))


@needs_host
def test_the_model_itself_is_left_alone() -> None:
    model = load_model(gymnasium_path("hopper"))
    before = float(model.mj.opt.tolerance), float(model.table.opt_tolerance), model.table.opt_iterations
    check_model(model, backend="host", num_states=10, num_steps=10)
    assert (float(model.mj.opt.tolerance), float(model.table.opt_tolerance), model.table.opt_iterations) == before


@needs_host
def test_equal_seeds_give_equal_reports() -> None:
    reports = [
        check_model(gymnasium_path("hopper"), backend="host", num_states=40, num_steps=40, seed=seed)
        for seed in (5, 5, 6)
    ]
    assert reports[0].as_dict() == reports[1].as_dict()
    assert reports[0].coverage != reports[2].coverage


@needs_host
def test_what_cannot_be_reached_is_said() -> None:
    report = check_model(OUT_OF_REACH, backend="host", num_states=40, num_steps=40, tries=5)
    assert report.coverage.unreached == ()  # the free ball reaches the other one and the floor
    held = OUT_OF_REACH.replace("<freejoint/>", "")
    report = check_model(held, backend="host", num_states=40, num_steps=40, tries=5)
    assert report.coverage.unreached == ("no plane-sphere contact", "no sphere-sphere contact")
    assert report.coverage.pairs == {"plane-sphere": 0, "sphere-sphere": 0}
    assert report.coverage.limits == report.coverage.limits_total == 2
    assert report.passed


def test_a_refused_model_names_every_element() -> None:
    with pytest.raises(UnsupportedModelError) as refusal:
        check_model(model_with(*TOGETHER))
    shown = "\n".join(refusal.value.features)
    assert [name for name in TOGETHER if FEATURES[name].words not in shown] == []
    assert len(refusal.value.features) >= len(TOGETHER)


@pytest.mark.parametrize("argument", ["num_states", "num_steps", "tries"])
@pytest.mark.parametrize("value", [0, -3, 1.5, True])
def test_bad_numbers_fail_at_the_call(argument: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"{argument} is {value}; give a whole number of at least 1"):
        check_model(gymnasium_path("hopper"), **{argument: value})


def test_bad_choices_fail_before_the_search() -> None:
    calls: list[str] = []
    path = gymnasium_path("hopper")
    with pytest.raises(ValueError, match="unknown backend 'tpu'"):
        check_model(path, backend="tpu", progress=lambda what, done, total: calls.append(what))
    with pytest.raises(ValueError, match="unknown dtype 'float16'"):
        check_model(path, dtype="float16", progress=lambda what, done, total: calls.append(what))
    if available_backends()["cuda"]:
        with pytest.raises(BackendError):
            check_model(path, backend="cuda", progress=lambda what, done, total: calls.append(what))
    assert calls == []


@needs_host
def test_progress_counts_states_and_steps() -> None:
    calls: list[tuple[str, int, int]] = []
    check_model(
        gymnasium_path("hopper"),
        backend="host",
        num_states=12,
        num_steps=7,
        progress=lambda *call: calls.append(call),
    )
    assert [call for call in calls if call[0] == "states"] == [("states", i, 12) for i in range(1, 13)]
    assert [call for call in calls if call[0] == "trajectory"] == [("trajectory", i, 7) for i in range(1, 8)]


@needs_host
def test_takes_a_compiled_model_and_one_without_joints_to_limit() -> None:
    mj = mujoco.MjModel.from_xml_string(
        "<mujoco><worldbody><body><freejoint/><geom size='.1'/></body></worldbody></mujoco>"
    )
    report = check_model(mj, backend="host", num_states=10, num_steps=10)
    assert report.passed, report.verdict()
    assert (report.coverage.limits_total, report.coverage.pairs, report.coverage.rows) == (0, {}, 0)
    empty = [result.field for result in report.fields if not result.states]
    assert {"site_xpos", "ten_length", "actuator_force", "contact_dist"} <= set(empty)
    assert not {"xpos", "qM", "qacc", "qpos"} & set(empty)
    assert f"; {len(empty)} have no entries" in report.verdict()


def test_a_model_that_lies_on_a_margin_is_compared_with_wider_ones() -> None:
    sliding = """<mujoco><worldbody><geom type="plane" size="9 9 1"/><body pos="0 0 0.5">
      <joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 1 0"/><geom size="0.5"/>
      </body></worldbody></mujoco>"""
    report = check_model(sliding, backend="host", dtype="float64", num_states=20, num_steps=20)
    assert report.passed
    assert report.widened == 1e-3
    assert "margins 0.001 wider" in report.verdict()
    assert report.coverage.contacts >= report.coverage.num_states


@pytest.mark.slow
def test_forces_that_point_at_the_common_edge_of_two_sites_are_left_out() -> None:
    corners = ((1, 1), (-1, 1), (-1, -1), (1, -1))
    sites = "".join(
        f'<site name="s{i}" type="box" size=".01 .01 .05" pos="{0.01 * x} {0.01 * y} 0"/>'
        for i, (x, y) in enumerate(corners)
    )
    sensors = "".join(f'<touch site="s{i}"/>' for i in range(len(corners)))
    model = load_model(f"""
<mujoco><option gravity="0 0 0"/>
  <worldbody><body><freejoint/><geom type="capsule" size=".005 .05"/>{sites}</body>
    <body><freejoint/><geom type="ellipsoid" size=".1 .12 .15"/></body></worldbody>
  <sensor>{sensors}</sensor></mujoco>""")
    settings = {"backend": "host", "dtype": "float64", "num_states": 30, "num_steps": 10}
    report = check_model(model, **settings)
    assert report.passed, report
    assert report.coverage.readings_left_out > 0
    model.table.arrays["sensor_size"] = 0.5 * model.table.arrays["sensor_size"]
    assert "sensordata" in {result.field for result in check_model(model, **settings).failures}


def test_the_corners_of_a_mesh_that_lies_almost_flat_are_decided_in_double_precision_only() -> None:
    corners = " ".join(f"{x} {y} {z}" for x in (-0.1, 0.1) for y in (-0.1, 0.12) for z in (-0.1, 0.1))
    model = mujoco.MjModel.from_xml_string(f"""
<mujoco><asset><mesh name="block" vertex="{corners}"/></asset>
  <worldbody><geom type="plane" size="1 1 1"/>
    <body><freejoint/><geom type="mesh" mesh="block"/></body></worldbody></mujoco>""")
    for tilt, decided in ((1e-7, {"float64"}), (1e-4, {"float64", "float32"})):
        qpos = np.array([0, 0, 0.0999, 1, 0, 0, 0], dtype=float)
        mujoco.mju_axisAngle2Quat(qpos[3:], np.array([0.6, 0.8, 0.0]), tilt)
        assert {dtype for dtype in ("float64", "float32") if Oracle(model, dtype).is_decided(qpos)} == decided


def test_contacts_of_meshes_are_right_if_the_geoms_are_as_far_apart_as_they_say() -> None:
    corners = " ".join(f"{x} {y} {z}" for x in (-0.1, 0.1) for y in (-0.1, 0.12) for z in (-0.1, 0.1))
    shapes = ('type="box" size=".1 .1 .1"', 'type="capsule" size=".1 .1"', 'type="cylinder" size=".1 .1"')
    bodies = "".join(
        f"<body><freejoint/><geom {shape}/></body>" for shape in (*shapes, 'type="ellipsoid" size=".1 .15 .2"')
    )
    model = mujoco.MjModel.from_xml_string(f"""
<mujoco><option ccd_tolerance="1e-12" ccd_iterations="500"><flag multiccd="disable"/></option>
  <asset><mesh name="block" vertex="{corners}"/></asset>
  <worldbody><geom type="mesh" mesh="block"/>{bodies}</worldbody></mujoco>""")
    data, sampler = mujoco.MjData(model), Sampler(model, 0)
    found = 0
    for _ in range(20):
        sampler.random().put_into(model, data)
        mujoco.mj_fwdPosition(model, data)
        found += int((data.contact.geom[:, 0] * data.contact.geom[:, 1] == 0).sum())
        assert are_optimal(model, data)
        if (data.contact.geom == 0).any():
            data.contact.dist[(data.contact.geom == 0).any(axis=1)] += 1e-4
            assert not are_optimal(model, data)
    assert found > 20


def test_forces_of_free_bodies_are_as_exact_as_those_on_them() -> None:
    model = load_model(OWN["pile"])
    readings, one = np.zeros(model.nsensordata), np.eye(model.nsensordata)
    readings[:6] = 30.0, 0.0, 0.0, 0.5, -0.5, 0.2
    fields = {"cfrc_ext": np.full((model.nbody, 6), 1e4), "sensordata": readings, "cfrc_int": np.zeros(3)}
    evaluation = Evaluation(Sampler(model.mj, 0).random(), fields, Touched(0, 0, Counter(), frozenset(), 0))

    def error(name: str, ours: np.ndarray) -> Any:
        absolute, relative = world_errors(model, name, ours[None], [evaluation])
        return absolute[0], relative[0]

    assert error("sensordata", readings + one[3]) == (1.0, pytest.approx(1e-4 / 30))
    assert error("sensordata", readings + one[1]) == (1.0, pytest.approx(1 / 30))
    assert error("cfrc_int", np.ones(3))[1] == pytest.approx(1e-4)
