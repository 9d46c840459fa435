"""Springs and dampers of joints and fixed tendons, linear or polynomial, in JAX, for one world; as after mj_passive."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from simengine.physics.math.vector_jax import const, matmul, present
from simengine.physics.passive.springs_jax import at_dofs, damper_force, joint_stretch, rate_at, tendon_pull
from simengine.physics.tendons.lengths_jax import length_rows


def passive_general(m: Any, qpos: jax.Array, qvel: jax.Array) -> tuple[jax.Array]:
    """qfrc_passive (nv,) [N, N m]: springs towards qpos_spring and dampers.

    Args: qpos (nq,) [m, rad], qvel (nv,) [m/s, rad/s].
    """
    # (1) dampers
    force = damper_force(m.dof_damping, m.dof_dampingpoly, qvel)

    # (2) springs
    stiffness, poly = m.jnt_stiffness, np.asarray(m.jnt_stiffnesspoly)
    if present(stiffness).any() or poly.any():
        s = joint_stretch(m, qpos)
        pull = rate_at(stiffness[s.joint], poly[s.joint], s.size) * s.along
        force = force - at_dofs(m, s.dof, pull)

    # (3) tendons: force along each, then its projection on each dof
    if m.ntendon:
        by_qpos, by_qvel = (rows[m.njnt :] for rows in length_rows(m))
        length, velocity = matmul(const(by_qpos, qpos), qpos), matmul(const(by_qvel, qvel), qvel)
        force = force + matmul(const(by_qvel.T, qvel), tendon_pull(m, np.arange(m.ntendon), length, velocity))
    return (force,)
