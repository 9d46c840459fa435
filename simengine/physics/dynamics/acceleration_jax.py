"""Sum of the smooth forces and the acceleration they give without constraints, in JAX, for one world.

Quantities as after mj_fwdAcceleration.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from simengine.physics.math.forest_jax import carried
from simengine.physics.math.tree_matrices_jax import Matrix, solve_factored
from simengine.physics.math.vector_jax import cross, dot


def acceleration(
    m: Any,
    xfrc_applied: jax.Array,
    qfrc_applied: jax.Array,
    xipos: jax.Array,
    subtree_com: jax.Array,
    cdof: jax.Array,
    qfrc_passive: jax.Array,
    qfrc_bias: jax.Array,
    qfrc_actuator: jax.Array,
    qLD: Matrix,
) -> tuple[jax.Array, jax.Array]:
    """Unconstrained force and acceleration.

    Args: xfrc_applied (nbody, 6) force [N] at the body's centre of mass, then torque [N m], in the world frame;
        qfrc_applied (nv,); xipos (nbody, 3); subtree_com (nbody, 3); cdof (nv, 6); qfrc_passive, qfrc_bias,
        qfrc_actuator (nv,); qLD (nv, nv) lower Cholesky factor of qM.
    Returns: qfrc_smooth (nv,) [N, N m], qacc_smooth (nv,) [m/s^2, rad/s^2].
    """
    # (1) applied wrenches about the com of the tree, summed over the bodies that each dof carries
    force, torque = xfrc_applied[:, :3], xfrc_applied[:, 3:]
    lever = xipos - subtree_com[m.body_rootid]
    wrench = jnp.concatenate([torque + cross(lever, force), force], axis=-1)
    qfrc_xfrc = dot(cdof, carried(m, wrench))

    # (2) all smooth forces
    qfrc_smooth = qfrc_passive - qfrc_bias + qfrc_applied + qfrc_actuator + qfrc_xfrc

    # (3) M qacc_smooth = qfrc_smooth
    return qfrc_smooth, solve_factored(qLD, qfrc_smooth)
