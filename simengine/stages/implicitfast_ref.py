"""Implicit integration but for Coriolis and centrifugal forces, in JAX, for one world. As mj_implicit."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from simengine.stages.implicit_ref import (
    actuator_slopes,
    coriolis_derivative,
    end_of_step,
    fluid_derivative,
    linear_derivative,
    lone_free_dofs,
)


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
    """State one time step later; arguments and results as of `implicit`."""
    # (1) D, the symmetric part of the derivative of the smooth forces by the velocity, without Coriolis forces
    actuators = (ctrl, act, act_dot, actuator_length, actuator_velocity, actuator_force, qfrc_actuator)
    slope = actuator_slopes(m, *actuators)
    D = linear_derivative(m, ten_J.reshape(m.ntendon, m.nv), actuator_moment.reshape(m.nu, m.nv), slope)
    drag = fluid_derivative(m, xipos, ximat, geom_xpos, geom_xmat, subtree_com, cdof, qvel)
    moving, lone = 0.5 * (drag + drag.T), lone_free_dofs(m)
    if lone.any():  # MuJoCo takes such trees in full
        moving = jnp.where(lone[:, None], drag - coriolis_derivative(m, cinert, cdof, qvel), moving)

    # (2) acceleration with the forces at the end of the step
    # (3) velocity, then position with it
    return end_of_step(m, qM, D + moving, qfrc_smooth + qfrc_constraint, qpos, qvel)
