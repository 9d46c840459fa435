"""Forces between bodies in JAX, for one world. `cacc` and `cfrc_int` as after mj_rnePostConstraint."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from simengine.physics.math import spatial_jax as spatial
from simengine.physics.math import tree_jax as tree
from simengine.physics.math.forest_jax import forest_of, moved, subtree_sums
from simengine.physics.math.vector_jax import const, matmul


def body_forces(
    m: Any,
    cinert: jax.Array,
    cdof: jax.Array,
    cvel: jax.Array,
    cacc_bias: jax.Array,
    qacc: jax.Array,
    cfrc_ext: jax.Array,
) -> tuple[jax.Array, jax.Array]:
    """Acceleration of every body, and the force that its parent exerts on it through the joint.

    Args: cinert (nbody, 10), cdof (nv, 6), cvel (nbody, 6), cacc_bias (nbody, 6), qacc (nv,), cfrc_ext (nbody, 6).
    Returns: cacc (nbody, 6), cfrc_int (nbody, 6) torque [N m] about the com of the tree, then force [N].
    """
    # (1) accelerations due to qacc, summed along the branches
    cacc = cacc_bias + moved(m, cdof * qacc[:, None])

    # (2) the force that each body needs, I a + v x I v, minus the external forces
    need = spatial.inertial_force(cinert, cvel, cacc) - cfrc_ext

    # (3) the joint of a body transmits the sum over its subtree; the world body's entry is the sum of its children's
    forest = forest_of(m)
    if forest is not None:
        return cacc, subtree_sums(forest, need).at[0].set(need[1:].sum(axis=0))
    inside = tree.subtree(m) & (np.arange(m.nbody) > 0)
    return cacc, matmul(const(inside, need), need)
