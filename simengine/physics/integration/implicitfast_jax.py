"""Implicit integration without most Coriolis and centrifugal forces, in JAX, for one world. As mj_implicit."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from simengine.physics.dynamics.rne_jax import rne
from simengine.physics.integration.implicit_jax import actuator_slopes, end_of_step, fluid_derivative, linear_derivative
from simengine.physics.kinematics.com_vel_jax import com_vel
from simengine.physics.math import tree_jax as tree
from simengine.physics.math.vector_jax import const


def implicitfast(
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
    """State one time step later; arguments and results are those of `implicit`."""
    # (1) D, the symmetric part of the derivative of the smooth forces with respect to the velocity
    actuators = (ctrl, act, act_dot, actuator_length, actuator_velocity, actuator_force, qfrc_actuator)
    slope = actuator_slopes(m, *actuators)
    D = linear_derivative(m, qvel, ten_J.reshape(m.ntendon, m.nv), actuator_moment.reshape(m.nu, m.nv), slope)
    drag = fluid_derivative(m, xipos, ximat, geom_xpos, geom_xmat, subtree_com, cdof, qvel)

    D = D + 0.5 * (drag + drag.T)
    alone = free_alone(m)
    if alone.any():
        # a tree with a free joint only has the complete derivative, Coriolis forces included
        whole = drag - 0.5 * (drag + drag.T)
        whole = whole - jax.jacfwd(lambda v: rne(m, v, cinert, cdof, *com_vel(m, v, cdof))[0])(qvel)
        D = D + whole * const(alone[:, None] & alone[None, :], D)

    # (2) acceleration with the forces at the end of the step
    # (3) velocity, then position with the new velocity
    return end_of_step(m, qM, D, qfrc_smooth + qfrc_constraint, qpos, qvel)


def free_alone(m: Any) -> np.ndarray:
    """(nv,) bool: dofs of trees with a free joint only."""
    root = np.asarray(m.body_rootid)[m.dof_bodyid]
    dofs = np.bincount(root, minlength=m.nbody)[root]
    return (dofs == 6) & (np.asarray(m.jnt_type)[m.dof_jntid] == tree.FREE)
