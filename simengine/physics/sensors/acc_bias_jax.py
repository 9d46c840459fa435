"""Accelerations of bodies at zero qacc in JAX, for one world."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simengine.physics.math.forest_jax import moved
from simengine.physics.math.vector_jax import const, joined


def acc_bias(m: Any, qvel: jax.Array, cdof_dot: jax.Array) -> tuple[jax.Array]:
    """cacc_bias (nbody, 6): com-based accelerations of bodies due to velocities and gravity.

    Args: qvel (nv,), cdof_dot (nv, 6).
    """
    # (1) gravity enters as an upward acceleration of the world body
    lift = const(joined(np.zeros(3), -m.opt_gravity), qvel)
    moving = moved(m, cdof_dot * qvel[:, None])
    return (moving + jnp.broadcast_to(lift, moving.shape),)
