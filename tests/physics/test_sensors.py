"""Sensors in simulations: readings agree with MuJoCo's after a step, and are computed only if they are in `keep`."""

from __future__ import annotations

from functools import cache

import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from simengine import Model, Simulation, check_model, load_model
from simengine.check.oracle import Oracle
from simengine.model import load_table
from simengine.model.sensors import measured_in
from simengine.physics.sensors.sensor_pos_jax import sensor_pos
from tests.emission.lists import written
from tests.helpers.oracle import Sample, place, sample
from tests.models import OWN, compile_model

TENDONS = OWN["tendons"]
WORLDS = 12
EULER, RK4 = int(mujoco.mjtIntegrator.mjINT_EULER), int(mujoco.mjtIntegrator.mjINT_RK4)

PENDULUM = """
<mujoco>
  <option integrator="RK4" timestep="0.02"/>
  <worldbody>
    <body><joint name="swing" axis="0 1 0"/><geom size="0.1" pos="0 0 -1"/><site name="bob" pos="0 0 -1"/></body>
  </worldbody>
  <sensor><jointpos name="angle" joint="swing"/><accelerometer name="felt" site="bob"/></sensor>
</mujoco>
"""


@cache
def stepped(integrator: int) -> tuple[Sample, np.ndarray]:
    """Some sampled states of the model of tendons, and MuJoCo's sensordata after one step from each."""
    decided = Oracle(compile_model("tendons")).is_decided
    chosen = [i for i, qpos in enumerate(sample("tendons").qpos) if decided(qpos)][:WORLDS]
    states = Sample(*(values[chosen] for values in sample("tendons")))
    changed = mujoco.MjModel.from_xml_string(TENDONS)
    changed.opt.tolerance = changed.opt.ls_tolerance = 1e-12
    changed.opt.integrator = integrator
    readings = []
    for i in range(WORLDS):
        data = mujoco.MjData(changed)
        place(states, i, data)
        mujoco.mj_step(changed, data)
        readings.append(data.sensordata.copy())
    return states, np.array(readings)


def errors(mj: mujoco.MjModel, ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    """(nsensor,) worst error of each sensor, relative to its own reading where that is more than 1."""
    parts = [slice(adr, adr + dim) for adr, dim in zip(mj.sensor_adr, mj.sensor_dim, strict=True)]
    difference = [np.abs(ours[:, part] - theirs[:, part]).max(axis=1) for part in parts]
    scale = [np.maximum(1.0, np.abs(theirs[:, part]).max(axis=1)) for part in parts]
    return (np.array(difference) / np.array(scale)).max(axis=1)


def model_with(integrator: int) -> Model:
    """The model of tendons with an integrator, and a solver that converges."""
    mj = compile_model("tendons")
    mj.opt.tolerance = mj.opt.ls_tolerance = 1e-12
    mj.opt.integrator = integrator
    return load_model(mj)


def judge(mj: mujoco.MjModel, ours: np.ndarray, theirs: np.ndarray, dtype: str) -> None:
    """Every sensor within its tolerance."""
    worst = errors(mj, ours.astype(np.float64), theirs)
    forces = measured_in(mj, "acc")
    assert worst[~forces].max() <= (1e-9 if dtype == "float64" else 5e-5)
    assert worst[forces].max() <= (1e-6 if dtype == "float64" else 2e-3)


@pytest.mark.parametrize("integrator", [EULER, RK4])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_readings_after_a_step_are_those_of_mujoco(dtype: str, integrator: int) -> None:
    states, theirs = stepped(integrator)
    sim = Simulation(model_with(integrator), WORLDS, backend="host", dtype=dtype, keep=("sensordata", "qacc"))
    sim.set_state(**states._asdict())
    sim.step()
    judge(sim.model.mj, np.asarray(sim.field("sensordata")), theirs, dtype)


def test_the_jax_backend_reads_what_mujoco_reads_after_a_step_of_runge_kutta() -> None:
    sim = Simulation(PENDULUM, 2, backend="jax", dtype="float64", keep=("sensordata",))
    qpos, qvel = np.array([[0.3], [-0.2]]), np.array([[0.5], [-1.0]])
    sim.set_state(qpos=qpos, qvel=qvel)
    sim.step()
    np.testing.assert_array_equal(sim.sensor("angle"), qpos)
    for world in range(2):
        data = mujoco.MjData(sim.model.mj)
        data.qpos[:], data.qvel[:] = qpos[world], qvel[world]
        mujoco.mj_step(sim.model.mj, data)
        np.testing.assert_allclose(np.asarray(sim.field("sensordata"))[world], data.sensordata, atol=1e-9)


def test_a_sensor_reads_under_its_name_and_only_where_kept() -> None:
    text = TENDONS.replace('<jointpos joint="left"/>', '<jointpos name="angle" joint="left"/>')
    sim = Simulation(text, 2, backend="host", keep=("sensordata",))
    assert sim.model.nsensor > 100
    start = np.array(sim.qpos)
    sim.step()
    adr = sim.model.mj.jnt_qposadr[sim.model.mj.joint("left").id]
    np.testing.assert_array_equal(sim.sensor("angle")[:, 0], start[:, adr])
    with pytest.raises(ValueError, match=r"has no sensor 'angel' \(did you mean 'angle'\?\); it has \d+ sensors"):
        sim.sensor("angel")
    with pytest.raises(ValueError, match="'sensordata' does not hold the latest step"):
        Simulation(text, 2, backend="host").sensor("angle")


def test_sensors_that_nobody_reads_launch_nothing() -> None:
    launched = {}
    for keep in ((), ("sensordata",)):
        sim = Simulation(TENDONS, 2, backend="host", keep=keep)
        sim.step()
        launched[keep] = written(sim, *sim.schedule.kernel_list)
    assert launched["sensordata",] - launched[()] >= {"sensordata", "cacc_bias", "cfrc_ext", "cacc"}
    assert not launched[()] & {"sensordata", "cacc_bias", "cfrc_ext", "cacc", "actuator_length", "ten_velocity"}


def test_disabled_sensors_read_zero() -> None:
    sim = Simulation(TENDONS.replace("<option", '<option><flag sensor="disable"/></option><option'), backend="host")
    sim.forward()
    assert sim.field("sensordata").shape[1] > 300
    assert not np.asarray(sim.field("sensordata")).any()


LENSES = (
    'fovy="50" resolution="640 480"',
    'resolution="200 90" focal=".02 .03" sensorsize=".05 .04" principal=".003 -.002"',
)


SEEN = f"""
<mujoco><worldbody>
  <body><joint axis="0 1 0.2"/><geom type="capsule" size="0.05" fromto="0 0 0 0.4 0 0"/>
    {"".join(f'<camera name="c{i}" pos="0.1 -2 0.3" xyaxes="1 0 0.1 0 0 1" {lens}/>' for i, lens in enumerate(LENSES))}
    <body pos="0.4 0 0"><joint axis="1 0 0.3"/><geom size="0.1" pos="0 0.1 0"/><site name="s" pos="0.1 0.2 0.1"/></body>
  </body></worldbody>
  <sensor><camprojection site="s" camera="c0"/><camprojection site="s" camera="c1" cutoff="60"/></sensor></mujoco>"""


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_cameras_project_sites_where_mujoco_does(dtype: str) -> None:
    report = check_model(SEEN, backend="host", dtype=dtype, num_states=30, num_steps=10)
    assert report.passed, report
    assert next(field for field in report.fields if field.field == "sensordata").states == 30


def test_cameras_project_sites_in_jax() -> None:
    model = load_table(SEEN)
    data = mujoco.MjData(model.mj)
    data.qpos[:] = 0.3, -0.2
    mujoco.mj_forward(model.mj, data)
    names = "xpos xquat xipos subtree_com geom_xpos geom_xmat ten_length actuator_length"
    known = [jnp.asarray(getattr(data, name)) for name in names.split()]
    (found,) = sensor_pos(model, jnp.asarray(data.qpos), jnp.zeros(()), *known)
    np.testing.assert_allclose(found, data.sensordata, rtol=1e-5)
