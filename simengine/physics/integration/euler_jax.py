"""Semi-implicit Euler step in JAX, for one world, with joint damping taken implicitly. As mj_Euler."""

from __future__ import annotations

from typing import Any

import jax

from simengine.physics.integration.joint_space_jax import advance
from simengine.physics.math.tree_matrices_jax import Matrix, factor, plus_diagonal, solve_factored
from simengine.physics.math.vector_jax import const


def euler(
    m: Any,
    qM: Matrix,
    qacc: jax.Array,
    qfrc_smooth: jax.Array,
    qfrc_constraint: jax.Array,
    qpos: jax.Array,
    qvel: jax.Array,
) -> tuple[jax.Array, jax.Array]:
    """State one time step later.

    Args: qM (nv, nv), qacc, qfrc_smooth, qfrc_constraint (nv,); updates qpos (nq,), qvel (nv,).
    Returns: qpos (nq,), qvel (nv,).
    """
    dt = float(m.opt_timestep)

    # (1) damping at the end of the step: (M + dt B) a = all forces
    if m.opt_eulerdamp:
        damped = plus_diagonal(qM, const(m.dof_damping * dt, qacc))
        qacc = solve_factored(factor(damped), qfrc_smooth + qfrc_constraint)

    # (2) velocity, then position with the new velocity
    qvel = qvel + qacc * dt
    return advance(m, qpos, qvel, dt), qvel
