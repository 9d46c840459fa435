"""Actuator forces in JAX, for one world: on joints and fixed tendons, fixed gain, affine bias.

Quantities as after mj_fwdActuation.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simengine.physics.actuation.actuators_jax import clamped
from simengine.physics.math.vector_jax import const, matmul
from simengine.physics.tendons.lengths_jax import length_rows


def actuation(m: Any, qpos: jax.Array, qvel: jax.Array, ctrl: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Force of every actuator and its generalised force.

    Args: qpos (nq,), qvel (nv,), ctrl (nu,) in each actuator's own unit.
    Returns: actuator_force (nu,), qfrc_actuator (nv,) [N, N m].
    """
    if m.nu == 0:
        return jnp.zeros(0, qvel.dtype), jnp.zeros(m.nv, qvel.dtype)
    by_qpos, by_qvel = (rows[m.actuator_lengthid] * np.asarray(m.actuator_gear)[:, :1] for rows in length_rows(m))

    # (1) controls within their ranges
    ctrl = clamped(ctrl, m.actuator_ctrllimited, m.actuator_ctrlrange)

    # (2) force = gain ctrl + bias0 + bias1 length + bias2 velocity, within its range
    gain = const(m.actuator_gainprm[:, 0], qvel)
    bias = const(m.actuator_biasprm[:, :3], qvel)
    length, velocity = matmul(const(by_qpos, qpos), qpos), matmul(const(by_qvel, qvel), qvel)
    force = gain * ctrl + bias[:, 0] + bias[:, 1] * length + bias[:, 2] * velocity
    force = clamped(force, m.actuator_forcelimited, m.actuator_forcerange)

    # (3) generalised force by the gears, clamped to the joints' force ranges
    qfrc = matmul(const(by_qvel.T, qvel), force)
    limited, bounds = np.asarray(m.jnt_actfrclimited)[m.dof_jntid], np.asarray(m.jnt_actfrcrange)[m.dof_jntid]
    return force, clamped(qfrc, limited, bounds)
