"""Actuators of every kind in JAX, for one world. Quantities as after mj_fwdActuation."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simengine.physics.actuation.actuators_jax import (
    TRN_TENDON,
    activation_rate,
    actuator_forces,
    actuator_input,
    clamped,
)
from simengine.physics.math.vector_jax import const, matmul


def actuation_general(
    m: Any,
    ctrl: jax.Array,
    act: jax.Array,
    actuator_length: jax.Array,
    actuator_velocity: jax.Array,
    actuator_moment: jax.Array,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Rates of the activations, force of every actuator and their generalised force.

    Args: ctrl (nu,), act (na,) in each actuator's own unit, actuator_length, actuator_velocity (nu,), actuator_moment
        (nu, nv).
    Returns: act_dot (na,), actuator_force (nu,), qfrc_actuator (nv,) [N, N m].
    """
    # (1) rates of the activations, from the controls within their ranges
    ctrl = clamped(ctrl, m.actuator_ctrllimited, m.actuator_ctrlrange)
    act_dot = activation_rate(m, ctrl, act) if m.na and m.opt_actuation else jnp.zeros_like(act)

    # (2) force = gain * input + bias
    signal = actuator_input(m, ctrl, act, act_dot)
    force = actuator_forces(m, signal, actuator_length, actuator_velocity)
    force = jnp.where(np.asarray(m.actuator_disabled, bool), 0.0, force)

    # (3) clamped to the force ranges of the tendons, then to their own
    force = _within_tendon_limits(m, force)
    force = clamped(force, m.actuator_forcelimited, m.actuator_forcerange)

    # (4) generalised force, clamped to the joints' force ranges
    qfrc = matmul(force, actuator_moment)
    limited, bounds = np.asarray(m.jnt_actfrclimited)[m.dof_jntid], np.asarray(m.jnt_actfrcrange)[m.dof_jntid]
    return act_dot, force, clamped(qfrc, limited, bounds)


def _within_tendon_limits(m: Any, force: jax.Array) -> jax.Array:
    """Forces (nu,) after the force limits of tendons; a limit scales all forces on its tendon by one factor."""
    limited = np.flatnonzero(m.tendon_actfrclimited)
    if not limited.size:
        return force
    tendon = np.where(np.asarray(m.actuator_trntype) == TRN_TENDON, np.asarray(m.actuator_trnid)[:, 0], -1)
    member = limited[:, None] == tendon[None, :]
    total = matmul(const(member, force), force)
    low, high = const(np.asarray(m.tendon_actfrcrange)[limited], force).T
    bounded = jnp.clip(total, low, high)
    beyond = bounded != total
    scale = jnp.where(beyond, bounded / jnp.where(beyond, total, 1.0), 1.0)
    return force * (1.0 + matmul(const(member.T, force), scale - 1.0))
