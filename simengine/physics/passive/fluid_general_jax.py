"""Fluid forces in JAX, for one world, by both of MuJoCo's models. Quantities as after mj_passive.

Source: MuJoCo documentation, chapter "Computation", section "Fluid forces".
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simengine.physics.math import tree_jax as tree
from simengine.physics.math.vector_jax import MINVAL, const, cross, dot, matmul, tables
from simengine.physics.passive.ellipsoid_fluid_jax import ellipsoid_forces
from simengine.physics.passive.fluid_jax import fluid


def fluid_general(
    m: Any,
    xipos: jax.Array,
    ximat: jax.Array,
    geom_xpos: jax.Array,
    geom_xmat: jax.Array,
    subtree_com: jax.Array,
    cdof: jax.Array,
    cvel: jax.Array,
    qfrc_passive: jax.Array,
) -> tuple[jax.Array, jax.Array]:
    """Viscous resistance, drag, lift and added mass.

    Args: xipos (nbody, 3) [m], ximat (nbody, 9), geom_xpos (ngeom, 3) [m], geom_xmat (ngeom, 9), subtree_com
        (nbody, 3) [m], cdof (nv, 6), cvel (nbody, 6), qfrc_passive (nv,) without the fluid [N, N m].
    Returns: qfrc_fluid (nv,), and qfrc_passive (nv,) with it [N, N m].
    """
    # (1) boxes: Stokes drag, and drag on their faces; a body with ellipsoid geoms has no box
    qfrc_fluid, _ = fluid(m, xipos, ximat, subtree_com, cdof, cvel, jnp.zeros_like(qfrc_passive))
    geom = np.flatnonzero(np.asarray(m.geom_fluid)[:, 0])
    if not m.has_fluid or not geom.size:
        return qfrc_fluid, qfrc_passive + qfrc_fluid

    # (2) ellipsoids: added mass, lift, Stokes drag and viscous drag, in the geoms' frames
    body = np.asarray(m.geom_bodyid)[geom]
    axes = geom_xmat[geom].reshape(-1, 3, 3)
    arm = geom_xpos[geom] - subtree_com[np.asarray(m.body_rootid)[body]]
    spin = cvel[body, :3]
    relative = cvel[body, 3:] + cross(spin, arm) - const(m.opt_wind, cvel)[None, :]
    w, v = (jnp.sum(axes * vector[:, :, None], axis=1) for vector in (spin, relative))
    xp, mass = tables(m.body_mass)
    heavy = const(xp.where(mass[body] >= MINVAL, 1.0, 0.0)[:, None], v)  # no fluid acts on other bodies
    local = (vector * heavy for vector in ellipsoid_forces(m, geom, w, v))
    force, torque = (jnp.sum(axes * vector[:, None, :], axis=2) for vector in local)

    # (3) sums over the bodies that each dof carries
    wrench = jnp.concatenate([torque + cross(arm, force), force], axis=1)
    carried = const(tree.body_dofs(m)[body].T, cdof)
    qfrc_fluid = qfrc_fluid + dot(cdof, matmul(carried, wrench))
    return qfrc_fluid, qfrc_passive + qfrc_fluid
