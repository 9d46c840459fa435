"""Every flag that the engine supports: a step agrees with MuJoCo's under the flag, and differs from one without it."""

from __future__ import annotations

from functools import cache

import mujoco
import numpy as np
import pytest

from simengine import Simulation, load_model
from simengine.model.support import HONOURED_DISABLE_FLAGS, HONOURED_ENABLE_FLAGS

ARM = """
<mujoco model="arm">
  <option timestep="0.01" integrator="{integrator}" density="50" viscosity="0.3" o_margin="0.02"
          o_solref="0.03 0.8" o_solimp="0.7 0.8 0.01 0.4 3" o_friction="0.3 0.4 0.02 0.003 0.004"/>
  <worldbody>
    <geom name="floor" type="plane" size="1 1 1"/>
    <body name="upper" pos="0 0 0.18">
      <joint name="lift" type="slide" axis="0 0 1" damping="3" stiffness="40" springref="0.1"
             range="-0.05 1" limited="true" solreflimit="0.01 1"/>
      <joint name="turn" type="hinge" axis="0 1 0" range="-10 10" limited="true" damping="2" actuatorfrcrange="0.5 2"
             actuatorfrclimited="true"/>
      <geom name="upper" type="capsule" size="0.1 0.2" quat="0.7 0 0.7 0"/>
      <body name="lower" pos="0.2 0 0">
        <joint name="bend" type="hinge" axis="0 1 0" damping="0.1" range="-60 -20" limited="true"/>
        <geom name="lower" type="capsule" size="0.1 0.2" quat="0.7 0 0.7 0" pos="0.36 0 0.03"/>
      </body>
    </body>
  </worldbody>
  <tendon>
    <fixed name="cable" stiffness="5" damping="0.4" springlength="0 0.1" range="-0.2 0.1" limited="true">
      <joint joint="turn" coef="1"/><joint joint="bend" coef="-0.5"/>
    </fixed>
  </tendon>
  <actuator>
    <position tendon="cable" kp="2" gear="0.5"/>
    <motor joint="turn" ctrlrange="-1 1" ctrllimited="true"/>
    <position joint="bend" kp="3" forcerange="0.1 2" forcelimited="true"/>
  </actuator>
</mujoco>
"""

CHANGING = {
    "constraint": mujoco.mjtDisableBit.mjDSBL_CONSTRAINT,
    "limit": mujoco.mjtDisableBit.mjDSBL_LIMIT,
    "contact": mujoco.mjtDisableBit.mjDSBL_CONTACT,
    "spring": mujoco.mjtDisableBit.mjDSBL_SPRING,
    "damper": mujoco.mjtDisableBit.mjDSBL_DAMPER,
    "gravity": mujoco.mjtDisableBit.mjDSBL_GRAVITY,
    "clampctrl": mujoco.mjtDisableBit.mjDSBL_CLAMPCTRL,
    "filterparent": mujoco.mjtDisableBit.mjDSBL_FILTERPARENT,
    "actuation": mujoco.mjtDisableBit.mjDSBL_ACTUATION,
    "eulerdamp": mujoco.mjtDisableBit.mjDSBL_EULERDAMP,
    "refsafe": mujoco.mjtDisableBit.mjDSBL_REFSAFE,
}
"""Flags that change a step of the arm by much."""

FLAGS = {int(flag): flag.name.removeprefix("mjDSBL_").lower() for flag in mujoco.mjtDisableBit.__members__.values()}


@cache
def stepped(integrator: str, flags: int, enabled: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """(MuJoCo's state, the host backend's) after one step from a state in contact, beyond limits and controls."""
    mj = mujoco.MjModel.from_xml_string(ARM.format(integrator=integrator))
    mj.opt.disableflags, mj.opt.enableflags = flags, enabled
    mj.opt.tolerance = mj.opt.ls_tolerance = 1e-12
    data = mujoco.MjData(mj)
    data.qpos[:], data.qvel[:], data.ctrl[:] = (-0.1, 0.2, -0.3), (0.3, 2.0, -1.0), (-0.4, 5.0, 0.3)
    sim = Simulation(load_model(mj), num_worlds=1, backend="host", dtype="float64")
    sim.set_state(qpos=data.qpos, qvel=data.qvel, ctrl=data.ctrl)
    mujoco.mj_step(mj, data)
    sim.step()
    return np.concatenate([data.qpos, data.qvel]), np.concatenate([np.asarray(sim.qpos)[0], np.asarray(sim.qvel)[0]])


@pytest.mark.parametrize("integrator", ["Euler", "RK4"])
@pytest.mark.parametrize("flag", [0, *HONOURED_DISABLE_FLAGS], ids=lambda flag: FLAGS.get(flag, "none"))
def test_a_step_with_the_flag_is_mujocos(flag: int, integrator: str) -> None:
    theirs, ours = stepped(integrator, flag)
    np.testing.assert_allclose(ours, theirs, atol=1e-9)


@pytest.mark.parametrize("integrator", ["Euler", "RK4"])
@pytest.mark.parametrize("flag", HONOURED_ENABLE_FLAGS)
def test_a_step_with_the_enabled_flag_is_mujocos(flag: int, integrator: str) -> None:
    theirs, ours = stepped(integrator, 0, flag)
    np.testing.assert_allclose(ours, theirs, atol=1e-9)


def test_of_the_enable_flags_only_override_changes_the_step() -> None:
    plain, override = stepped("Euler", 0)[0], int(mujoco.mjtEnableBit.mjENBL_OVERRIDE)
    for flag in HONOURED_ENABLE_FLAGS:
        assert (np.abs(stepped("Euler", 0, flag)[0] - plain).max() > 1e-4) == (flag == override)


@pytest.mark.parametrize("flag", CHANGING)
def test_the_flag_changes_the_step(flag: str) -> None:
    assert np.abs(stepped("Euler", int(CHANGING[flag]))[0] - stepped("Euler", 0)[0]).max() > 1e-4
    assert int(CHANGING[flag]) in HONOURED_DISABLE_FLAGS


@pytest.mark.parametrize(
    "flags", [("limit", "contact"), ("gravity", "damper", "actuation"), ("spring", "damper"), tuple(CHANGING)]
)
def test_several_flags_at_once(flags: tuple[str, ...]) -> None:
    theirs, ours = stepped("Euler", sum(int(CHANGING[flag]) for flag in flags))
    np.testing.assert_allclose(ours, theirs, atol=1e-9)


@pytest.mark.parametrize("joint", ['actuatorfrcrange="1 2"', 'actuatorfrcrange="1 2" actuatorgravcomp="true"'])
def test_a_range_of_forces_without_zero_needs_an_actuator(joint: str) -> None:
    slide = f'<body gravcomp="1"><joint type="slide" axis="0 0 1" {joint}/><geom size="0.1"/></body>'
    mj = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{slide}</worldbody></mujoco>")
    data = mujoco.MjData(mj)
    mujoco.mj_forward(mj, data)
    with Simulation(load_model(mj), num_worlds=1, backend="host", dtype="float64") as sim:
        sim.forward()
        assert np.asarray(sim.field("qfrc_actuator")).item() == data.qfrc_actuator.item() == 0.0
        np.testing.assert_allclose(np.asarray(sim.field("qacc"))[0], data.qacc, atol=1e-9)
