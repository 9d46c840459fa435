"""Frames of the sites, which are fixed in their bodies, in JAX, for one world. Quantities as after mj_kinematics."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from simengine.physics.math import quaternion_jax as quaternion
from simengine.physics.math.vector_jax import const


def sites(m: Any, xpos: jax.Array, xquat: jax.Array) -> tuple[jax.Array, jax.Array]:
    """World poses of every site.

    Args: xpos (nbody, 3) [m], xquat (nbody, 4).
    Returns: site_xpos (nsite, 3) [m], site_xmat (nsite, 9).
    """
    body = np.asarray(m.site_bodyid)
    # (1) positions
    pos = xpos[body] + quaternion.rotate(xquat[body], const(m.site_pos, xpos))
    # (2) orientations
    return pos, quaternion.to_mat(quaternion.mul(xquat[body], const(m.site_quat, xquat)))
