"""Fluid forces in JAX, for one world: each body counts as a box of its mass and inertia. As after mj_passive.

Source: MuJoCo documentation, chapter "Computation", section "Fluid forces", "Inertia model".
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simengine.physics.math.forest_jax import carried
from simengine.physics.math.vector_jax import const, cross, dot, tables


def fluid(
    m: Any,
    xipos: jax.Array,
    ximat: jax.Array,
    subtree_com: jax.Array,
    cdof: jax.Array,
    cvel: jax.Array,
    qfrc_passive: jax.Array,
) -> tuple[jax.Array, jax.Array]:
    """Viscous resistance and quadratic drag.

    Args: xipos (nbody, 3) [m], ximat (nbody, 9), subtree_com (nbody, 3) [m], cdof (nv, 6), cvel (nbody, 6),
        qfrc_passive (nv,) without the fluid [N, N m].
    Returns: qfrc_fluid (nv,), and qfrc_passive (nv,) with it [N, N m].
    """
    if not m.has_fluid:
        return jnp.zeros_like(qfrc_passive), qfrc_passive

    # (1) velocity of the centres of mass through the fluid, in the frames of the principal axes
    axes = ximat.reshape(-1, 3, 3)
    arm = xipos - subtree_com[m.body_rootid]
    spin = cvel[:, :3]
    relative = cvel[:, 3:] + cross(spin, arm) - const(m.opt_wind, cvel)[None, :]
    w, v = (jnp.sum(axes * vector[:, :, None], axis=1) for vector in (spin, relative))

    # (2) Stokes drag on spheres whose diameter is the boxes' mean side, and drag on the boxes' faces
    xp, density, viscosity, box = tables(m.opt_density, m.opt_viscosity, m.body_box)
    box = xp.where(np.asarray(m.body_fluid)[:, None] != 0, 0.0, box)  # a body with ellipsoid geoms has no box
    diameter = box.mean(axis=1, keepdims=True)
    first, second = xp.roll(box, -1, axis=1), xp.roll(box, -2, axis=1)
    face = 0.5 * density * first * second
    stir = density * box * (first**4 + second**4) / 64.0
    f = -(const(3.0 * np.pi * diameter * viscosity, v) + const(face, v) * jnp.abs(v)) * v
    t = -(const(np.pi * diameter**3 * viscosity, w) + const(stir, w) * jnp.abs(w)) * w
    force, torque = (jnp.sum(axes * vector[:, None, :], axis=2) for vector in (f, t))

    # (3) sums over the bodies that each dof carries
    wrench = jnp.concatenate([torque + cross(arm, force), force], axis=1)
    qfrc_fluid = dot(cdof, carried(m, wrench))
    return qfrc_fluid, qfrc_passive + qfrc_fluid
