"""Gravity compensation in JAX, for one world. Quantities as after mj_passive and mj_fwdActuation."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simengine.physics.math.forest_jax import carried
from simengine.physics.math.vector_jax import const, cross, dot, tables

PASSIVE, ACTUATOR, LIMITED = 0, 1, 2
"""Codes of `jnt_gravcomp`."""


def gravcomp(
    m: Any,
    xipos: jax.Array,
    subtree_com: jax.Array,
    cdof: jax.Array,
    qfrc_passive: jax.Array,
    qfrc_actuator: jax.Array,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Forces against the weight of bodies, added to the passive forces or to those of the actuators.

    Args: xipos (nbody, 3), subtree_com (nbody, 3) [m], cdof (nv, 6); qfrc_passive, qfrc_actuator (nv,) without them.
    Returns: qfrc_gravcomp (nv,); qfrc_passive and qfrc_actuator (nv,) with it [N, N m].
    """
    if not m.ngravcomp:
        return jnp.zeros_like(qfrc_passive), qfrc_passive, qfrc_actuator

    # (1) a force against each body's weight, at its centre of mass
    _, share, mass, gravity = tables(m.body_gravcomp, m.body_mass, m.opt_gravity)
    force = const(-(share * mass)[:, None] * gravity[None], xipos)
    arm = xipos - subtree_com[m.body_rootid]
    wrench = jnp.concatenate([cross(arm, force), force], axis=1)

    # (2) sums over the bodies that each dof carries
    qfrc_gravcomp = dot(cdof, carried(m, wrench))

    # (3) add to the passive forces, or to the actuator forces within the joints' ranges
    joint = np.asarray(m.dof_jntid)
    to = np.asarray(m.jnt_gravcomp)[joint]
    low, high = const(np.asarray(m.jnt_actfrcrange)[joint].T, xipos)
    passive = qfrc_passive + jnp.where(to == PASSIVE, qfrc_gravcomp, 0.0)
    actuator = qfrc_actuator + jnp.where((to == ACTUATOR) | (to == LIMITED), qfrc_gravcomp, 0.0)
    return qfrc_gravcomp, passive, jnp.where(to == LIMITED, jnp.clip(actuator, low, high), actuator)
