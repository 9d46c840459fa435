"""Implicit integration in JAX, for one world: velocity-dependent smooth forces at the end of the step. As mj_implicit.

As in MuJoCo, the derivative couples dofs of one branch only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simengine.physics.actuation.actuators_jax import (
    TRN_JOINT,
    TRN_JOINTINPARENT,
    TRN_TENDON,
    actuator_forces,
    actuator_input,
    clamped,
)
from simengine.physics.dynamics.rne_jax import rne
from simengine.physics.integration.joint_space_jax import advance
from simengine.physics.kinematics.com_vel_jax import com_vel
from simengine.physics.math import tree_jax as tree
from simengine.physics.math.vector_jax import const, matmul, tables
from simengine.physics.passive.fluid_general_jax import fluid_general
from simengine.physics.passive.gravcomp_jax import LIMITED
from simengine.physics.passive.springs_jax import damper_slope


def implicit(
    m: Any,
    qM: jax.Array,
    qfrc_smooth: jax.Array,
    qfrc_constraint: jax.Array,
    xipos: jax.Array,
    ximat: jax.Array,
    geom_xpos: jax.Array,
    geom_xmat: jax.Array,
    subtree_com: jax.Array,
    cinert: jax.Array,
    cdof: jax.Array,
    ten_J: jax.Array,
    ctrl: jax.Array,
    act: jax.Array,
    act_dot: jax.Array,
    actuator_length: jax.Array,
    actuator_velocity: jax.Array,
    actuator_moment: jax.Array,
    actuator_force: jax.Array,
    qfrc_actuator: jax.Array,
    qpos: jax.Array,
    qvel: jax.Array,
) -> tuple[jax.Array, jax.Array]:
    """State one time step later.

    Args: qM (nv, nv), qfrc_smooth, qfrc_constraint (nv,); the fields from which the derivative is computed: xipos
        (nbody, 3), ximat (nbody, 9), geom_xpos (ngeom, 3), geom_xmat (ngeom, 9), subtree_com (nbody, 3), cinert
        (nbody, 10), cdof (nv, 6), ten_J (ntendon, nv), ctrl (nu,), act, act_dot (na,), actuator_length,
        actuator_velocity, actuator_force (nu,), actuator_moment (nu, nv), qfrc_actuator (nv,); updates qpos (nq,),
        qvel (nv,).
    Returns: qpos (nq,), qvel (nv,).
    """
    # (1) D, the derivative of the smooth forces with respect to the velocity
    actuators = (ctrl, act, act_dot, actuator_length, actuator_velocity, actuator_force, qfrc_actuator)
    slope = actuator_slopes(m, *actuators)
    D = linear_derivative(m, qvel, ten_J.reshape(m.ntendon, m.nv), actuator_moment.reshape(m.nu, m.nv), slope)
    D = D + fluid_derivative(m, xipos, ximat, geom_xpos, geom_xmat, subtree_com, cdof, qvel)
    D = D - jax.jacfwd(lambda v: rne(m, v, cinert, cdof, *com_vel(m, v, cdof))[0])(qvel)
    return end_of_step(m, qM, D, qfrc_smooth + qfrc_constraint, qpos, qvel)


def end_of_step(
    m: Any, qM: jax.Array, D: jax.Array, force: jax.Array, qpos: jax.Array, qvel: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """qpos (nq,), qvel (nv,) after a step under `force` (nv,), whose derivative by the velocity is D (nv, nv)."""
    dt = float(m.opt_timestep)
    above = tree.dof_ancestors(m)

    # (2) acceleration with the forces at the end of the step: (M - dt D) a = all forces
    qacc = jnp.linalg.solve(qM - D * const(dt * (above | above.T), D), force)

    # (3) velocity, then position with the new velocity
    qvel = qvel + qacc * dt
    return advance(m, qpos, qvel, dt), qvel


def linear_derivative(m: Any, qvel: jax.Array, ten_J: jax.Array, moment: jax.Array, slope: jax.Array) -> jax.Array:
    """D (nv, nv) of dampers of joints and tendons, and of actuators.

    Args: qvel (nv,), ten_J (ntendon, nv), moment (nu, nv), slope (nu,).
    """
    of_tendons = damper_slope(m.tendon_damping, m.tendon_dampingpoly, matmul(ten_J, qvel))[:, None]
    return (
        matmul(moment.T, slope[:, None] * moment)
        - matmul(ten_J.T, of_tendons * ten_J)
        - jnp.diag(damper_slope(m.dof_damping, m.dof_dampingpoly, qvel))
    )


def fluid_derivative(
    m: Any,
    xipos: jax.Array,
    ximat: jax.Array,
    geom_xpos: jax.Array,
    geom_xmat: jax.Array,
    subtree_com: jax.Array,
    cdof: jax.Array,
    qvel: jax.Array,
) -> jax.Array:
    """D (nv, nv) of the fluid forces."""
    zero = jnp.zeros_like(qvel)
    if not m.has_fluid:
        return jnp.zeros((m.nv, m.nv), qvel.dtype)

    def force(v: jax.Array) -> jax.Array:
        cvel, _ = com_vel(m, v, cdof)
        return fluid_general(m, xipos, ximat, geom_xpos, geom_xmat, subtree_com, cdof, cvel, zero)[0]

    return jax.jacfwd(force)(qvel)


def actuator_slopes(
    m: Any,
    ctrl: jax.Array,
    act: jax.Array,
    act_dot: jax.Array,
    length: jax.Array,
    velocity: jax.Array,
    force: jax.Array,
    qfrc_actuator: jax.Array,
) -> jax.Array:
    """Derivatives (nu,) of the actuators' forces with respect to their velocities; zero where a force is clamped."""
    if not m.nu:
        return velocity
    signal = actuator_input(m, clamped(ctrl, m.actuator_ctrllimited, m.actuator_ctrlrange), act, act_dot)
    forces: Callable[[jax.Array], jax.Array] = lambda v: actuator_forces(m, signal, length, v)  # noqa: E731
    slope = jax.jvp(forces, (velocity,), (jnp.ones_like(velocity),))[1]
    kind, target = np.asarray(m.actuator_trntype), np.asarray(m.actuator_trnid)[:, 0]
    held = _at_bound(force, m.actuator_forcelimited, m.actuator_forcerange, 0.0)
    held = held | const(np.asarray(m.actuator_disabled) != 0, force).astype(bool)
    on_joint = np.flatnonzero((kind == TRN_JOINT) | (kind == TRN_JOINTINPARENT))
    if on_joint.size:
        joint = target[on_joint]
        dof, limited = np.asarray(m.jnt_dofadr)[joint], np.asarray(m.jnt_actfrclimited)[joint] != 0
        limited = limited | (np.asarray(m.jnt_gravcomp)[joint] == LIMITED)
        bound = _at_bound(qfrc_actuator[dof], limited, np.asarray(m.jnt_actfrcrange)[joint], 0.0)
        held = held.at[on_joint].set(held[on_joint] | bound)
    on_tendon = np.flatnonzero(kind == TRN_TENDON)
    if on_tendon.size:
        pulls = np.zeros((m.ntendon, m.nu))
        pulls[target[on_tendon], on_tendon] = 1.0
        total = matmul(const(pulls, force), force)  # forces scaled to the bound sum to it, up to rounding
        slack = 1e-6 * np.abs(m.tendon_actfrcrange).max(axis=1)
        bound = _at_bound(total, m.tendon_actfrclimited, m.tendon_actfrcrange, slack)
        held = held.at[on_tendon].set(held[on_tendon] | bound[target[on_tendon]])
    return jnp.where(held, 0.0, slope)


def _at_bound(x: jax.Array, limited: Any, bounds: Any, slack: Any) -> jax.Array:
    """Whether x (n,) is at one of its bounds (n, 2), or within `slack` of it."""
    limited = np.asarray(limited, bool)
    xp, bounds, slack = tables(bounds, slack)
    low = xp.where(limited, bounds[:, 0] + slack, -np.inf)
    high = xp.where(limited, bounds[:, 1] - slack, np.inf)
    return (x <= const(low, x)) | (x >= const(high, x))
