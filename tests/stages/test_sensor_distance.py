"""Sensors of distances against MuJoCo: of every two types of geoms, of bodies, near, deep in each other and far."""

from __future__ import annotations

from collections import Counter

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from simengine import Simulation, load_model
from simengine.errors import UnsupportedModelError
from simengine.physics.kinematics.kinematics_jax import kinematics
from simengine.physics.sensors.sensor_distance_jax import sensor_distance
from tests.helpers.oracle import quick_jit
from tests.stages.distance_pairs import CUTOFF, PAIRS, by_mujoco, model, poses

STATES = 200
IN_JAX = [27, 38, 47, 52, 103, 121]
"""States in which every pair is once deep and once near, because JAX takes seconds a state."""

TOLERANCE = {"float64": (5e-9, 5e-5, 5e-6), "float32": (2e-7, 1e-3, 3e-4)}
"""Of the distance [m], the normal, and the points [m]; those of MuJoCo's searches are no better in float64."""

TWO_ARMS = """<mujoco>
  <option ccd_tolerance="1e-12" ccd_iterations="500"/>
  <default><geom contype="0" conaffinity="0"/></default>
  <worldbody>
    <geom name="floor" type="plane" size="1 1 1" pos="0 0 -0.6"/>
    <body name="left"><freejoint/><geom type="box" size="0.1 0.05 0.07"/><geom name="tip" size="0.05" pos="0.2 0 0"/>
      <geom type="capsule" size="0.03 0.1" pos="-0.2 0.1 0"/></body>
    <body name="right"><freejoint/><geom type="ellipsoid" size="0.1 0.07 0.05"/>
      <geom type="cylinder" size="0.04 0.1" pos="0 0.2 0"/></body>
    <body name="bare"/>
  </worldbody>
  <sensor>
    <distance body1="left" body2="right" cutoff="1"/><normal body1="left" body2="right" cutoff="1"/>
    <fromto body1="right" body2="left" cutoff="1"/><distance body1="left" body2="right"/>
    <fromto body1="left" geom2="floor" cutoff="0.5"/><normal geom1="tip" body2="right" cutoff="0.05"/>
    <distance body1="world" body2="right" cutoff="0.4"/><fromto body1="bare" body2="left" cutoff="1"/>
    <distance body1="bare" body2="left" cutoff="1"/>
  </sensor>
</mujoco>"""


def by_host(mj: mujoco.MjModel, qpos: np.ndarray, dtype: str) -> np.ndarray:
    sim = Simulation(load_model(mj), num_worlds=len(qpos), backend="host", dtype=dtype, keep=("sensordata",))
    sim.set_state(qpos=qpos)
    sim.forward()
    readings = np.array(sim.field("sensordata"), np.float64)
    sim.close()
    return readings


def by_jax(mj: mujoco.MjModel, qpos: np.ndarray, dtype: str) -> np.ndarray:
    table = load_model(mj).table

    def readings(state: jax.Array) -> jax.Array:
        none = jnp.zeros((0, 3), dtype), jnp.zeros((0, 4), dtype)
        *_, geom_xpos, geom_xmat = kinematics(table, state, *none)
        return sensor_distance(table, geom_xpos, geom_xmat, jnp.zeros(table.nsensordata, dtype))[0]

    return np.asarray(quick_jit(jax.vmap(readings))(jnp.asarray(qpos, dtype)), np.float64)


def compare(ours: np.ndarray, wanted: np.ndarray, dtype: str) -> None:
    """Readings of all pairs, (n, pairs, 10)."""
    parts = (slice(0, 1), slice(1, 4), slice(4, 10))
    errors = np.abs(ours.reshape(wanted.shape) - wanted)
    for part, allowed in zip(parts, TOLERANCE[dtype], strict=True):
        worst = errors[..., part].max(axis=(0, 2))
        assert worst.max() <= allowed, (part, PAIRS[int(worst.argmax())], worst.max())


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_host_agrees_with_mujoco(dtype: str) -> None:
    compare(by_host(model(), poses(STATES), dtype), by_mujoco(poses(STATES)), dtype)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_jax_agrees_with_mujoco(dtype: str) -> None:
    qpos = poses(STATES)[IN_JAX]
    wanted = by_mujoco(qpos)
    assert (wanted[..., 0] < 0).any(axis=0).all()
    assert ((wanted[..., 0] > 0) & (wanted[..., 0] < CUTOFF)).any(axis=0).all()
    compare(by_jax(model(), qpos, dtype), wanted, dtype)


def test_the_poses_are_deep_near_and_far() -> None:
    dist = by_mujoco(poses(STATES))[..., 0]
    deep, near = ((dist < 0).sum(axis=0), ((dist > 0) & (dist < CUTOFF)).sum(axis=0))
    assert deep.min() >= 10
    assert near.min() >= 40
    assert (dist == CUTOFF).sum() > 500


def arms(number: int) -> tuple[mujoco.MjModel, np.ndarray, np.ndarray]:
    """The model of two bodies, states, exact in float32, and MuJoCo's readings."""
    mj, rng = mujoco.MjModel.from_xml_string(TWO_ARMS), np.random.default_rng(5)
    data, readings = mujoco.MjData(mj), []
    qpos = rng.normal(size=(number, 14))
    qpos[:, [0, 1, 2, 7, 8, 9]] = rng.uniform(-0.3, 0.3, size=(number, 6))
    qpos = qpos.astype(np.float32).astype(np.float64)
    for state in qpos:
        data.qpos[:] = state
        mujoco.mj_forward(mj, data)
        readings.append(data.sensordata.copy())
    return mj, qpos, np.array(readings)


@pytest.mark.parametrize(("backend", "dtype", "atol"), [
    ("host", "float64", 5e-6), ("host", "float32", 1e-4),
    pytest.param("jax", "float64", 5e-6, marks=pytest.mark.slow),
    pytest.param("jax", "float32", 1e-4, marks=pytest.mark.slow),
])  # fmt: skip
def test_bodies_agree_with_mujoco(backend: str, dtype: str, atol: float) -> None:
    """The slow cases compile for seconds."""
    mj, qpos, wanted = arms(80)
    ours = (by_host if backend == "host" else by_jax)(mj, qpos, dtype)
    assert Counter(np.sign(wanted[:, 0]).tolist())[-1.0] > 8
    np.testing.assert_allclose(ours, wanted, atol=atol)


def test_only_models_with_such_sensors_launch_their_kernel() -> None:
    launched = {}
    other = (
        TWO_ARMS[: TWO_ARMS.index("<sensor>")] + '<sensor><framepos objtype="body" objname="left"/></sensor></mujoco>'
    )
    for text, keep in ((TWO_ARMS, ()), (TWO_ARMS, ("sensordata",)), (other, ("sensordata",))):
        sim = Simulation(text, 2, backend="host", keep=keep)
        sim.step()
        launched[text, keep] = "sense_distance" in {entry.name for entry in sim.schedule.kernel_list}
        sim.close()
    assert list(launched.values()) == [False, True, False]


def test_a_disabled_sensor_reads_zero() -> None:
    text = TWO_ARMS.replace("<mujoco>", '<mujoco><option><flag sensor="disable"/></option>')
    mj = mujoco.MjModel.from_xml_string(text)
    assert not by_host(mj, arms(3)[1], "float64").any()


def test_searches_by_another_method_are_refused() -> None:
    text = TWO_ARMS.replace("<mujoco>", '<mujoco><option><flag nativeccd="disable"/></option>')
    with pytest.raises(UnsupportedModelError, match="distance ellipsoid-box with the disable flag nativeccd of sensor"):
        load_model(text)


@pytest.mark.slow
def test_gradients_of_distances_are_those_of_finite_differences() -> None:
    qpos = arms(6)[1]
    first = TWO_ARMS.index("<normal")
    one = TWO_ARMS[:first] + TWO_ARMS[TWO_ARMS.index("</sensor>") :]
    table, step = load_model(mujoco.MjModel.from_xml_string(one)).table, 1e-6

    def reading(state: jax.Array) -> jax.Array:
        none = jnp.zeros((0, 3)), jnp.zeros((0, 4))
        *_, geom_xpos, geom_xmat = kinematics(table, state, *none)
        (distance,) = sensor_distance(table, geom_xpos, geom_xmat, jnp.zeros(1))[0]
        return distance

    exact = np.asarray(quick_jit(jax.vmap(jax.grad(reading)))(jnp.asarray(qpos)))
    assert np.abs(exact).max(axis=1).min() > 0.1
    shifts = step * np.concatenate([np.eye(14), -np.eye(14)])[:, None]
    ahead, behind = np.split(np.asarray(quick_jit(jax.vmap(jax.vmap(reading)))(jnp.asarray(qpos + shifts))), 2)
    np.testing.assert_allclose(exact.T, (ahead - behind) / (2 * step), atol=1e-5)
