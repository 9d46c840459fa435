"""Coriolis, centrifugal and gravitational forces in JAX, for one world: recursive Newton-Euler without acceleration.

Source: R. Featherstone, Rigid Body Dynamics Algorithms (2008), section 5.3; quantities as after mj_rne.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from simengine.physics.math import spatial_jax as spatial
from simengine.physics.math.forest_jax import carried, moved
from simengine.physics.math.vector_jax import const, dot, joined


def rne(
    m: Any, qvel: jax.Array, cinert: jax.Array, cdof: jax.Array, cvel: jax.Array, cdof_dot: jax.Array
) -> tuple[jax.Array]:
    """qfrc_bias (nv,) [N, N m]: the force that keeps the velocities constant.

    Args: qvel (nv,), cinert (nbody, 10), cdof (nv, 6), cvel (nbody, 6), cdof_dot (nv, 6).
    """
    # (1) accelerations at constant qvel; gravity as an acceleration of the world frame
    gravity = joined(np.zeros(3), -m.opt_gravity)
    cacc = moved(m, cdof_dot * qvel[:, None]) + const(gravity, qvel)[None, :]

    # (2) force on each body: I a + v x I v
    cfrc_body = spatial.inertial_force(cinert, cvel, cacc)

    # (3) sums over the subtrees that each dof carries, projected on its axis
    return (dot(cdof, carried(m, cfrc_body)),)
