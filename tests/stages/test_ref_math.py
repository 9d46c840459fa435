"""Shared mathematics in delicate cases: rotations near zero, norms at zero, tree masks, and the ends of impedance."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from simengine.physics.collision.contact_jax import make_frame
from simengine.physics.constraints.soft_constraint_jax import clamped_solimp, impedance
from simengine.physics.math import quaternion_jax as quaternion
from simengine.physics.math import tree_jax as tree
from simengine.physics.math.vector_jax import normalize
from tests.helpers.oracle import oracle_model
from tests.models import COMPILED_IN_JAX

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("size", [0.0, 1e-12, 1e-5, 1e-3, 1.1e-3, 0.5, 3.0])
def test_exp_and_integrate_agree_with_mujoco(size: float) -> None:
    rotation = RNG.normal(size=3)
    rotation *= size / np.linalg.norm(rotation)
    start = RNG.normal(size=4)
    start /= np.linalg.norm(start)
    expected = start.copy()
    mujoco.mju_quatIntegrate(expected, rotation, 1.0)
    actual = quaternion.integrate(jnp.asarray(start), jnp.asarray(rotation), 1.0)
    np.testing.assert_allclose(actual, expected, atol=1e-15)


@pytest.mark.parametrize("size", [0.0, 1e-8, 1e-3, 0.7])
def test_derivative_of_exp_is_that_of_the_map(size: float) -> None:
    rotation = jnp.asarray([0.6, 0.0, 0.8]) * size
    jacobian = np.asarray(jax.jacrev(quaternion.exp)(rotation))
    step = 1e-6
    numeric = [
        (quaternion.exp(rotation.at[i].add(step)) - quaternion.exp(rotation.at[i].add(-step))) / (2 * step)
        for i in range(3)
    ]
    np.testing.assert_allclose(jacobian, np.stack(numeric, axis=1), atol=1e-9)


@pytest.mark.parametrize("size", [0.0, 1e-4, 0.0099, 0.0101, 1.5])
def test_rotation_rate_gives_the_angular_velocity(size: float) -> None:
    """q exp(u + dt u') must turn from q exp(u) with omega."""
    rotation = RNG.normal(size=3)
    rotation = jnp.asarray(rotation * size / np.linalg.norm(rotation))
    omega = jnp.asarray(RNG.normal(size=3))
    rate = quaternion.rotation_rate(rotation, omega)
    dt = 1e-6
    ahead, behind = quaternion.exp(rotation + dt * rate), quaternion.exp(rotation - dt * rate)
    conjugate = behind * jnp.asarray([1.0, -1, -1, -1])
    turned = quaternion.mul(conjugate, ahead)[1:] / dt
    np.testing.assert_allclose(turned, omega, atol=1e-8)


def test_rotations_agree_with_each_other_and_with_mujoco() -> None:
    q = RNG.normal(size=(7, 4))
    q /= np.linalg.norm(q, axis=1, keepdims=True)
    v = RNG.normal(size=(7, 3))
    by_quaternion = quaternion.rotate(jnp.asarray(q), jnp.asarray(v))
    by_matrix = np.einsum("nij,nj->ni", np.asarray(quaternion.to_mat(jnp.asarray(q))).reshape(-1, 3, 3), v)
    expected = np.zeros((7, 3))
    for i in range(7):
        mujoco.mju_rotVecQuat(expected[i], v[i], q[i])
    np.testing.assert_allclose(by_quaternion, expected, atol=1e-14)
    np.testing.assert_allclose(by_matrix, expected, atol=1e-14)


def test_normalize_at_zero_takes_the_fallback_and_has_finite_derivatives() -> None:
    fallback = jnp.asarray([0.0, 1.0, 0.0])
    unit, length = normalize(jnp.zeros(3), fallback)
    np.testing.assert_array_equal(unit, fallback)
    assert float(length) == 0.0
    jacobian = jax.jacrev(lambda a: normalize(a, fallback)[0])(jnp.zeros(3))
    assert bool(jnp.isfinite(jacobian).all())


@pytest.mark.parametrize(
    "normal", [(0, 0, 1), (0, 1, 0), (0.6, 0.49, 0.632), (0.6, 0.51, 0.616), (1, 0, 0), (0, -1, 0)]
)
def test_frames_follow_the_rule_of_the_second_axis(normal: tuple[float, ...]) -> None:
    expected = np.zeros(9)
    expected[:3] = np.asarray(normal) / np.linalg.norm(normal)
    frame = make_frame(jnp.asarray(expected[:3]))
    y = np.array([0.0, 1, 0]) if abs(expected[1]) < 0.5 else np.array([0.0, 0, 1])
    y = y - expected[:3] * (y @ expected[:3])
    expected[3:6] = y / np.linalg.norm(y)
    expected[6:] = np.cross(expected[:3], expected[3:6])
    np.testing.assert_allclose(frame, expected, atol=1e-15)


@pytest.mark.parametrize("name", COMPILED_IN_JAX)
def test_tree_masks_agree_with_jacobians(name: str) -> None:
    """A dof moves a body exactly where MuJoCo's Jacobian of the body says so, in a configuration without symmetry."""
    mj, model = oracle_model(name)
    data = mujoco.MjData(mj)
    data.qpos[:] = mj.qpos0 + 0.1 * np.arange(mj.nq)
    mujoco.mj_forward(mj, data)
    moves = tree.body_dofs(model)
    for body in range(mj.nbody):
        translation, rotation = np.zeros((3, mj.nv)), np.zeros((3, mj.nv))
        mujoco.mj_jac(mj, data, translation, rotation, data.xpos[body] + np.array([0.3, 0.5, 0.7]), body)
        felt = (np.abs(translation).max(axis=0) > 1e-12) | (np.abs(rotation).max(axis=0) > 1e-12)
        np.testing.assert_array_equal(moves[body], felt)


@pytest.mark.parametrize("solimp", [(0.9, 0.95, 0.001, 0.5, 2), (0.0, 0.8, 0.03, 0.3, 3), (0.4, 0.9, 0.1, 0.6, 1)])
def test_impedance_runs_from_d0_to_dwidth_and_meets_at_the_midpoint(solimp: tuple[float, ...]) -> None:
    d0, dwidth, width, midpoint, _ = clamped_solimp(solimp)[0]
    at = jnp.asarray([0.0, width * midpoint, width, 2 * width, -width])
    table = np.repeat(clamped_solimp(solimp), 5, axis=0)
    middle = d0 + midpoint * (dwidth - d0)
    np.testing.assert_allclose(impedance(table, at), [d0, middle, dwidth, dwidth, dwidth], rtol=1e-12)
    slope = jax.vmap(jax.grad(lambda r: impedance(table[:1], r[None])[0]))(at)
    assert bool(jnp.isfinite(slope).all())
    assert float(slope[1]) > 0
