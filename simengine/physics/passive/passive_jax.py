"""Passive forces in JAX, for one world: springs and dampers of joints and tendons. Quantities as after mj_passive."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simengine.physics.math import quaternion_jax as quaternion
from simengine.physics.math import tree_jax as tree
from simengine.physics.math.vector_jax import const, matmul, present
from simengine.physics.passive.springs_jax import at_dofs
from simengine.physics.tendons.lengths_jax import length_rows


def passive(m: Any, qpos: jax.Array, qvel: jax.Array) -> tuple[jax.Array]:
    """qfrc_passive (nv,) [N, N m]: springs towards qpos_spring and linear dampers.

    Args: qpos (nq,) [m, rad], qvel (nv,) [m/s, rad/s].
    """
    # (1) dampers
    force = -const(m.dof_damping, qvel) * qvel

    # (2) springs: of scalar coordinates, and of rotations by the rotation vector of their difference
    adr, dof = tree.plain_coordinates(m)
    stiffness = m.jnt_stiffness[np.asarray(m.dof_jntid)[dof]]
    sprung = np.flatnonzero(present(stiffness))
    if sprung.size:
        adr, dof = adr[sprung], dof[sprung]
        stretch = qpos[adr] - const(m.qpos_spring[adr], qpos)
        force = force - at_dofs(m, dof, const(stiffness[sprung], qpos) * stretch)
    adr, dof = tree.quaternions(m)
    stiffness = m.jnt_stiffness[np.asarray(m.dof_jntid)[dof]]
    if present(stiffness).any():
        quats = adr[:, None] + np.arange(4)
        rest, stands = const(m.qpos_spring[quats], qpos), quaternion.renormalize(qpos[quats])
        turned = quaternion.difference(rest, stands) * const(stiffness, qpos)[:, None]
        force = force.at[dof[:, None] + np.arange(3)].add(-turned)

    # (3) tendons: force along each, then its projection on each dof; no spring force within a range of lengths
    if m.ntendon:
        by_qpos, by_qvel = (rows[m.njnt :] for rows in length_rows(m))
        length, velocity = matmul(const(by_qpos, qpos), qpos), matmul(const(by_qvel, qvel), qvel)
        low, high = const(m.tendon_lengthspring, qpos).T
        stretch = length - jnp.clip(length, low, high)
        along = -const(m.tendon_stiffness, qpos) * stretch - const(m.tendon_damping, qvel) * velocity
        force = force + matmul(const(by_qvel.T, qvel), along)
    return (force,)
