"""Body velocities and rates of the dof axes in JAX, for one world. Quantities as after mj_comVel."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from simengine.physics.math import spatial_jax as spatial
from simengine.physics.math import tree_jax as tree
from simengine.physics.math.forest_jax import forest_of, moved
from simengine.physics.math.vector_jax import const, matmul


def com_vel(m: Any, qvel: jax.Array, cdof: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Spatial velocity of every body and time derivative of every dof axis, about the com of the tree.

    Args: qvel (nv,) [m/s, rad/s], cdof (nv, 6).
    Returns: cvel (nbody, 6), cdof_dot (nv, 6).
    """
    # (1) velocity that each dof contributes, summed along the branches for bodies and for the frames of the dof axes
    moving = cdof * qvel[:, None]
    forest = forest_of(m)
    if forest is None:
        masks = np.concatenate([tree.body_dofs(m), tree.dofs_before(m)])
        velocity = matmul(const(masks, qvel), moving)
        cvel, carrier = velocity[: m.nbody], velocity[m.nbody :]
    else:
        before = matmul(const(forest.before, qvel), forest.of_dofs(moving))
        cvel, carrier = moved(m, moving), forest.to_dofs(before)

    # (2) an axis turns with the frame in which it is fixed; a free joint's translation axes are fixed in the world
    turns = np.ones(m.nv)
    for adr in tree.free_dofs(m):
        turns[adr : adr + 3] = 0.0
    cdof_dot = spatial.motion_cross(carrier, cdof) * const(turns, qvel)[:, None]
    return cvel, cdof_dot
