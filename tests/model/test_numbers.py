"""Numbers of a model that no simulation can work with are refused when the model is loaded, by element."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import mujoco
import numpy as np
import pytest

import simengine

ROBOT = """
<mujoco model="robot">
  <asset><hfield name="hill" nrow="2" ncol="2" size="1 1 1 1"/></asset>
  <worldbody>
    <geom name="floor" type="hfield" hfield="hill"/>
    <body name="arm" pos="0 0 3"><joint name="shoulder" range="-1 inf" limited="true"/><geom name="upper" size=".1"/>
      <body name="hand" pos=".3 0 0"><joint name="wrist"/><geom size=".1"/><site name="palm"/></body></body>
  </worldbody>
  <tendon><fixed name="string"><joint joint="wrist" coef="1"/></fixed></tendon>
  <actuator><motor name="muscle" joint="wrist" forcerange="-inf inf"/></actuator>
</mujoco>
"""


def test_infinite_ranges_mean_that_there_are_none() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        simengine.load_model(ROBOT)


@pytest.mark.parametrize(
    ("field", "index", "said"),
    [
        ("dof_damping", 1, "dof_damping of joint 'wrist' is nan"),
        ("geom_solref", (1, 0), "geom_solref of geom 'upper' is nan"),
        ("geom_size", (2, 0), "geom_size of geom 2 is nan"),
        ("body_mass", 2, "body_mass of body 'hand' is nan"),
        ("jnt_range", (0, 1), "jnt_range of joint 'shoulder' is nan"),
        ("tendon_stiffness", 0, "tendon_stiffness of tendon 'string' is nan"),
        ("wrap_prm", 0, "wrap_prm of number 0 is nan"),
        ("actuator_gear", (0, 3), "actuator_gear of actuator 'muscle' is nan"),
        ("site_pos", (0, 2), "site_pos of site 'palm' is nan"),
        ("hfield_data", 3, "hfield_data of hfield 'hill' is nan"),
        ("qpos0", 1, "qpos0 of number 1 is nan"),
    ],
)
def test_nan_is_refused_by_element(field: str, index: int | tuple[int, int], said: str) -> None:
    mj = mujoco.MjModel.from_xml_string(ROBOT)
    getattr(mj, field)[index] = np.nan
    with pytest.raises(simengine.ModelError, match=f"model 'robot' has numbers that are not finite: {said}; correct"):
        simengine.load_model(mj)


def test_friction_that_drives_is_refused() -> None:
    """MuJoCo has a row for it, whose force has the direction of the motion."""
    mj = mujoco.MjModel.from_xml_string(ROBOT)
    mj.dof_frictionloss[1] = -0.5
    with pytest.raises(simengine.ModelError, match="friction that drives instead of braking: joint 'wrist' has -0.5; "):
        simengine.load_model(mj)


@pytest.mark.parametrize("option", ["density", "viscosity"])
def test_a_fluid_that_drives_is_refused(option: str) -> None:
    """MuJoCo takes negative numbers for zero, except at geoms whose fluid forces are those of an ellipsoid."""
    body = '<mujoco><worldbody><body><freejoint/><geom name="fin" size="0.1" {}/></body></worldbody></mujoco>'
    plain, ellipsoid = (mujoco.MjModel.from_xml_string(body.format(shape)) for shape in ("", 'fluidshape="ellipsoid"'))
    for mj in (plain, ellipsoid):
        setattr(mj.opt, option, -100.0)
    with pytest.raises(
        simengine.ModelError, match=f"a fluid that drives instead of braking: {option} -100 at geom 'fin'; "
    ):
        simengine.load_model(ellipsoid)
    data = mujoco.MjData(plain)
    data.qvel[:] = 1.0
    mujoco.mj_forward(plain, data)
    assert not data.qfrc_fluid.any()
    simengine.load_model(plain)


def _wind(mj: mujoco.MjModel) -> None:
    mj.opt.wind[1] = np.inf


def _gain(mj: mujoco.MjModel) -> None:
    mj.actuator_gainprm[0, 0] = -np.inf
    mj.dof_armature[0] = np.inf


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_wind, r"option wind is \[ 0. inf  0.\]"),
        (_gain, "actuator_gainprm of actuator 'muscle' is -inf; dof_armature of joint 'shoulder' is inf"),
    ],
)
def test_infinities_are_refused_where_none_can_be_meant(change: Callable[[mujoco.MjModel], None], said: str) -> None:
    mj = mujoco.MjModel.from_xml_string(ROBOT)
    change(mj)
    with pytest.raises(simengine.ModelError, match=said):
        simengine.load_model(mj)


def _margin(mj: mujoco.MjModel) -> None:
    mj.opt.o_margin = np.nan


def _friction(mj: mujoco.MjModel) -> None:
    mj.opt.o_friction[1] = np.inf


@pytest.mark.parametrize(
    ("change", "said"), [(_margin, "option o_margin is nan"), (_friction, r"option o_friction is .*inf")]
)
def test_numbers_of_all_contacts_count_where_they_override(change: Callable[[mujoco.MjModel], None], said: str) -> None:
    usual, overridden = (
        mujoco.MjModel.from_xml_string(ROBOT.replace("<asset>", f"{option}<asset>"))
        for option in ("", '<option><flag override="enable"/></option>')
    )
    change(usual)
    simengine.load_model(usual)
    change(overridden)
    with pytest.raises(simengine.ModelError, match=said):
        simengine.load_model(overridden)


@pytest.mark.parametrize("name", ["tolerance", "ls_tolerance", "noslip_tolerance", "ccd_tolerance"])
def test_a_tolerance_of_nan_is_refused(name: str) -> None:
    mj = mujoco.MjModel.from_xml_string(ROBOT)
    setattr(mj.opt, name, np.inf)
    simengine.load_model(mj)
    setattr(mj.opt, name, np.nan)
    with pytest.raises(simengine.ModelError, match=f"option {name} is nan"):
        simengine.load_model(mj)


def test_numbers_that_are_only_drawn_do_not_count() -> None:
    mj = mujoco.MjModel.from_xml_string(ROBOT)
    mj.geom_rgba[:] = np.nan
    simengine.load_model(mj)


def test_a_joint_without_inertia_is_named() -> None:
    mj = mujoco.MjModel.from_xml_string(ROBOT)
    mj.body_mass[2], mj.body_inertia[2] = 0, 0
    with pytest.warns(UserWarning, match="joint 'wrist' of model 'robot' moves without inertia.*armature"):
        simengine.load_model(mj)


def test_two_joints_about_one_axis_are_singular_together() -> None:
    twice = ROBOT.replace('<joint name="wrist"/>', '<joint name="wrist"/><joint name="again"/>')
    with pytest.warns(UserWarning, match="joint '(wrist|again)' of model 'robot' moves without inertia"):
        simengine.load_model(twice)


def _damping(mj: mujoco.MjModel) -> None:
    mj.dof_damping[1] = 1e300


def _stretch(mj: mujoco.MjModel) -> None:
    mj.geom_size[1, 0], mj.opt.gravity[2] = 1e39, -1e40


def _no_limits(mj: mujoco.MjModel) -> None:
    mj.jnt_range[0, 1] = mj.actuator_forcerange[0, 1] = 1e300


def test_a_camera_counts_if_a_sensor_looks_through_it() -> None:
    far = ROBOT.replace("<worldbody>", '<worldbody><camera name="eye" pos="0 0 1e40"/>')
    simengine.load_model(far).table.check_precision("float32")
    seen = far.replace("</mujoco>", '<sensor><camprojection site="palm" camera="eye"/></sensor></mujoco>')
    with pytest.raises(simengine.ModelError, match="float32 cannot hold: cam_pos of camera 'eye' is 1e\\+40; cam_pos0"):
        simengine.load_model(seen).table.check_precision("float32")
    mj = mujoco.MjModel.from_xml_string(seen)
    mj.cam_pos[0, 1] = np.nan
    with pytest.raises(simengine.ModelError, match="cam_pos of camera 'eye' is nan"):
        simengine.load_model(mj)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_damping, "dof_damping of joint 'wrist' is 1e\\+300; correct the model, or simulate it with dtype='float64'"),
        (_stretch, r"geom_size of geom 'upper' is 1e\+39; option gravity is \["),
        (_no_limits, None),
    ],
)
def test_numbers_beyond_float32_are_refused_there_by_element(
    change: Callable[[mujoco.MjModel], None], said: str | None
) -> None:
    mj = mujoco.MjModel.from_xml_string(ROBOT)
    usual = simengine.Simulation(mj, backend="host", dtype="float32")
    change(mj)
    model = simengine.load_model(mj)
    simengine.Simulation(model, backend="host", dtype="float64")
    made: list[Callable[[], object]] = [
        lambda: simengine.Simulation(model, backend="host", dtype="float32"),
        lambda: simengine.Simulation(model, backend="jax", dtype="float32"),
        lambda: usual.add_group(model, 1),
        lambda: simengine.initial_state(model),
        lambda: simengine.initial_state(model, np.float32, num_worlds=2),
    ]
    for make in made:
        if said is None:
            make()
            continue
        with pytest.raises(simengine.ModelError, match=f"model 'robot' has numbers that float32 cannot hold: {said}"):
            make()
    assert len(usual.groups) == 1 + (said is None)


@pytest.mark.parametrize(("size", "said"), [("1e-300 1 1 1", "2e-300"), ("1 1e-9 1 1", "2e-09"), ("1e-6 1 1 1", "")])
def test_height_fields_whose_cells_no_index_counts_are_refused(size: str, said: str) -> None:
    """Under a geom of a metre they would be more than int32 counts, in MuJoCo, too."""
    text = ROBOT.replace('size="1 1 1 1"', f'size="{size}"')
    if not said:
        assert simengine.load_model(text)
        return
    with pytest.raises(simengine.ModelError, match=f"cells below 1e-08 m: hfield 'hill' has cells of {said} m; give"):
        simengine.load_model(text)


def test_inertia_whose_orientation_overflows_is_refused() -> None:
    """MuJoCo makes zero of it, and its boxes around the body then miss contacts."""
    inertial = '<inertial pos="0 0 0" mass="1" quat="{} 1 0 0" diaginertia="1 1 1"/><geom name="upper"'
    turned = ROBOT.replace('<geom name="upper"', inertial)
    assert simengine.load_model(turned.format("2"))
    with pytest.raises(
        simengine.ModelError, match="without an orientation, body_iquat is zero: body 'arm'; correct it"
    ):
        simengine.load_model(turned.format("2e300"))
