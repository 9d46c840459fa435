"""Nearest points of capsules at a small angle: a long one beside a short one, where float32 loses digits."""

from __future__ import annotations

import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from simengine.physics.collision.pairs.capsule_capsule_jax import capsule_capsule
from tests.stages.test_primitives import Contacts, by_kernels, by_mujoco, difference, two_bodies

SHORT, LONG = 'type="capsule" size="0.03 0.14"', 'type="capsule" size="0.06 1.86"'
ANGLES = (0.02, 0.05, 0.1, 0.2)


@pytest.fixture(scope="module")
def mj() -> mujoco.MjModel:
    return two_bodies(SHORT, LONG, 0.0)


@pytest.fixture(scope="module")
def qpos() -> np.ndarray:
    """(n, 14): the axes cross at a distance of 0.085 m, in the inner part of the short capsule."""
    rng, found = np.random.default_rng(3), []
    for angle in np.repeat(ANGLES, 30):
        pose, axes = np.zeros(14), np.zeros(9)
        pose[:3], pose[3:7] = rng.normal(size=3), rng.normal(size=4)
        pose[3:7] /= np.linalg.norm(pose[3:7])
        mujoco.mju_quat2Mat(axes, pose[3:7])
        x, _, z = axes.reshape(3, 3).T
        turn = np.array([np.cos(angle / 2), np.sin(angle / 2), 0, 0])  # about the axis across both
        mujoco.mju_mulQuat(pose[10:], pose[3:7], turn)
        mujoco.mju_quat2Mat(axes, pose[10:])
        other = axes.reshape(3, 3)[:, 2]
        pose[7:10] = pose[:3] + rng.uniform(-0.1, 0.1) * z + 0.085 * x - rng.uniform(-1.7, 1.7) * other
        found.append(pose)
    return np.array(found).astype(np.float32).astype(np.float64)


def by_jax(mj: mujoco.MjModel, qpos: np.ndarray) -> list[Contacts]:
    """The contacts of slot 0 in float32."""
    places, data = [], mujoco.MjData(mj)
    for pose in qpos:
        data.qpos[:] = pose
        mujoco.mj_kinematics(mj, data)
        places.append((data.geom_xpos.copy(), data.geom_xmat.copy()))
    pos, mat = (jnp.asarray(np.array(part), jnp.float32) for part in zip(*places, strict=True))
    one, two = (jnp.asarray(np.tile(size, (len(qpos), 1)), jnp.float32) for size in mj.geom_size)
    dist, point, frame = map(np.asarray, capsule_capsule(pos[:, 0], mat[:, 0], one, pos[:, 1], mat[:, 1], two))
    return [(dist[i, :1], point[i, :1], frame[i, :1]) for i in range(len(qpos))]


def test_normals_at_small_angles_are_mujocos_in_float32(mj: mujoco.MjModel, qpos: np.ndarray) -> None:
    """With one step from the normal equations, normals are off by 3e-3 at 0.02 rad."""
    theirs = by_mujoco(mj, qpos)
    assert all(len(each[0]) == 1 for each in theirs)
    for ours in (by_kernels(mj, qpos, "float32"), by_jax(mj, qpos)):
        assert max(difference(*pair) for pair in zip(ours, theirs, strict=True)) <= 1e-4
