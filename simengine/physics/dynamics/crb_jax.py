"""Composite rigid-body inertias and the joint-space inertia matrix in JAX, for one world.

Source: R. Featherstone, Rigid Body Dynamics Algorithms (2008), section 6.2; quantities as after mj_crb.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simengine.physics.math import spatial_jax as spatial
from simengine.physics.math import tree_jax as tree
from simengine.physics.math.vector_jax import const, matmul


def crb(m: Any, cinert: jax.Array, cdof: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Composite inertia of every subtree, and the joint-space inertia matrix.

    Args: cinert (nbody, 10), cdof (nv, 6), about the com of the tree.
    Returns: crb (nbody, 10), zero for the world body; qM (nv, nv) symmetric [kg, kg m, kg m^2], armature included.
    """
    # (1) composite inertias: sums over subtrees; the world body has none, because trees have different coms
    inside = tree.subtree(m)
    inside[0] = False
    composite = matmul(const(inside, cinert), cinert)

    # (2) momentum of the subtree of each dof's body per unit velocity of the dof
    momentum = spatial.inertia_mul(composite[m.dof_bodyid], cdof)

    # (3) its projection on the dof itself and on the dofs above
    projected = matmul(momentum, cdof.T)
    lower = projected * const(tree.dof_ancestors(m), cdof)
    strict = lower * const(~np.eye(m.nv, dtype=bool), cdof)
    return composite, lower + strict.T + jnp.diag(const(m.dof_armature, cdof))
