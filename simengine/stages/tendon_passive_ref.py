"""Springs and dampers of spatial tendons in JAX, for one world; those of fixed tendons are the stage `passive`'s."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simengine.math.vector import const, matmul


def tendon_passive(
    m: Any, ten_length: jax.Array, ten_velocity: jax.Array, ten_J: jax.Array, qfrc_passive: jax.Array
) -> tuple[jax.Array]:
    """qfrc_passive (nv,) [N, N m] with the forces of spatial tendons added.

    Args: ten_length, ten_velocity (ntendon,), ten_J (ntendon, nv), qfrc_passive (nv,).
    """
    spatial = np.flatnonzero(m.tendon_pathnum)
    if not spatial.size:
        return (qfrc_passive,)
    # (1) force along each tendon; its spring rests within a range of lengths
    low, high = const(np.asarray(m.tendon_lengthspring)[spatial], ten_length).T
    stretch = ten_length[spatial] - jnp.clip(ten_length[spatial], low, high)
    stiffness, damping = (const(np.asarray(a)[spatial], ten_length) for a in (m.tendon_stiffness, m.tendon_damping))
    force = -stiffness * stretch - damping * ten_velocity[spatial]
    # (2) its share along each dof
    return (qfrc_passive + matmul(force, ten_J[spatial]),)
