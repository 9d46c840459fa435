"""Lengths that limits and actuators act on, in JAX: coordinates of hinge and slide joints, and lengths of tendons.

Length number i is that of joint i, or of tendon i - njnt. A fixed tendon's is a weighted sum of joint coordinates.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simengine.physics.math import tree_jax as tree
from simengine.physics.math.vector_jax import const, matmul


def lengths(m: Any, qpos: jax.Array, ten_length: jax.Array, ten_J: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Every length (njnt + ntendon,) and its derivative with respect to the velocities (njnt + ntendon, nv).

    Args: qpos (nq,), ten_length (ntendon,), ten_J (ntendon, nv). Ball and free joints have no length here.
    """
    by_qpos, by_qvel = (rows[: m.njnt] for rows in length_rows(m))
    of_joints = matmul(const(by_qpos, qpos), qpos)
    return jnp.concatenate([of_joints, ten_length]), jnp.concatenate([const(by_qvel, qpos), ten_J])


def length_rows(m: Any) -> tuple[np.ndarray, np.ndarray]:
    """Jacobians of every length: by coordinates (njnt + ntendon, nq) and by velocities (njnt + ntendon, nv).

    The lengths are linear, so they and their rates are these rows times qpos and times qvel. Rows of free joints, which
    have no length, are zero.
    """
    by_qpos, by_qvel = np.zeros((m.njnt + m.ntendon, m.nq)), np.zeros((m.njnt + m.ntendon, m.nv))
    scalar = np.flatnonzero(np.asarray(m.jnt_type) >= tree.SLIDE)
    adr, dof = np.asarray(m.jnt_qposadr), np.asarray(m.jnt_dofadr)
    by_qpos[scalar, adr[scalar]] = 1.0
    by_qvel[scalar, dof[scalar]] = 1.0
    tendon = m.njnt + np.asarray(m.wrap_tenid)
    by_qpos[tendon, np.asarray(m.wrap_qposadr)] = m.wrap_prm
    by_qvel[tendon, np.asarray(m.wrap_dofadr)] = m.wrap_prm
    return by_qpos, by_qvel
