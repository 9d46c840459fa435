"""Springs and dampers of spatial tendons in JAX, for one world; those of fixed tendons belong to `passive`."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from simengine.physics.math.vector_jax import matmul
from simengine.physics.passive.springs_jax import tendon_pull


def tendon_passive(
    m: Any, ten_length: jax.Array, ten_velocity: jax.Array, ten_J: jax.Array, qfrc_passive: jax.Array
) -> tuple[jax.Array]:
    """qfrc_passive (nv,) [N, N m] with the forces of spatial tendons added.

    Args: ten_length, ten_velocity (ntendon,), ten_J (ntendon, nv), qfrc_passive (nv,).
    """
    spatial = np.flatnonzero(m.tendon_pathnum)
    if not spatial.size:
        return (qfrc_passive,)
    # (1) force along each tendon
    force = tendon_pull(m, spatial, ten_length[spatial], ten_velocity[spatial])
    # (2) its projection on each dof
    return (qfrc_passive + matmul(force, ten_J[spatial]),)
