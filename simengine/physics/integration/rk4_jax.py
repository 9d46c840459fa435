"""Fourth-order Runge-Kutta in JAX, for one world. As mj_RungeKutta.

Each evaluation starts from the step's first state and moves along the rate and acceleration of the one before it. The
orientation of a free or ball joint is q exp(u). The method averages the rate of u, not the angular velocity, and so is
of fourth order for quaternions too: H. Munthe-Kaas, BIT 38 (1998). As in MuJoCo, u is that of the shortest rotation.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from simengine.physics.integration.joint_space_jax import advance
from simengine.physics.math import quaternion_jax as quaternion
from simengine.physics.math import tree_jax as tree

REACH = (0.0, 0.5, 0.5, 1.0)
"""Fraction of the time step at which each of the four evaluations is."""

WEIGHT = (1 / 6, 1 / 3, 1 / 3, 1 / 6)
"""Weight of each evaluation in the step."""


def rk4_point(
    m: Any, qpos: jax.Array, qvel: jax.Array, rate: jax.Array, qacc: jax.Array, reach: jax.Array | float
) -> tuple[jax.Array, jax.Array]:
    """State (nq,), (nv,) reached from qpos, qvel along `rate` (nv,) and `qacc` (nv,) for a fraction of the step."""
    # (2) always from the first state
    dt = reach * float(m.opt_timestep)
    return advance(m, qpos, rate, dt), qvel + qacc * dt


def rk4_rate(m: Any, rate: jax.Array, reach: jax.Array | float, velocity: jax.Array) -> jax.Array:
    """Rate (nv,) of the displacement from the step's first state, at one point of the step.

    Args: rate (nv,), reach: how the point was reached (see `rk4_point`); velocity (nv,) at the point.
    """
    # (1) the velocity itself, except for rotations
    dof = tree.quaternions(m)[1]
    if not dof.size:
        return velocity
    turning = dof[:, None] + np.arange(3)
    turned = quaternion.shortest(rate[turning] * (reach * float(m.opt_timestep)))
    return velocity.at[turning].set(quaternion.rotation_rate(turned, velocity[turning]))
