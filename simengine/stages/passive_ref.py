"""Passive forces in JAX, for one world: joint springs and dampers. Quantities as after mj_passive."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from simengine.math import tree
from simengine.math.vector import const, matmul


def passive(m: Any, qpos: jax.Array, qvel: jax.Array) -> tuple[jax.Array]:
    """qfrc_passive (nv,) [N, N m]: springs towards qpos_spring and linear dampers.

    Args: qpos (nq,) [m, rad], qvel (nv,) [m/s, rad/s].
    """
    # (1) dampers
    force = -const(m.dof_damping, qvel) * qvel

    # (2) springs of hinges and slides
    adr, dof = tree.scalar_joints(m)
    stiffness = np.asarray(m.jnt_stiffness)[np.asarray(m.dof_jntid)[dof]]
    sprung = np.flatnonzero(stiffness)
    if sprung.size:
        adr, dof, stiffness = adr[sprung], dof[sprung], stiffness[sprung]
        stretch = qpos[adr] - const(m.qpos_spring[adr], qpos)
        spread = np.zeros((m.nv, dof.size))
        spread[dof, np.arange(dof.size)] = stiffness
        force = force - matmul(const(spread, qpos), stretch)
    return (force,)
