"""Motion of the generalised coordinates along generalised velocities."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simengine.physics.math import quaternion_jax as quaternion
from simengine.physics.math import tree_jax as tree


def advance(m: Any, qpos: jax.Array, qvel: jax.Array, dt: jax.Array | float) -> jax.Array:
    """qpos (nq,) after moving with constant qvel (nv,) for dt [s]; quaternions keep length 1.

    Quantities as after mj_integratePos.
    """
    plain_adr, plain_dof = tree.plain_coordinates(m)
    parts, addresses = [qpos[plain_adr] + qvel[plain_dof] * dt], [plain_adr]
    quat_adr, quat_dof = tree.quaternions(m)
    if quat_adr.size:
        adr = quat_adr[:, None] + np.arange(4)
        turned = quaternion.integrate(qpos[adr], qvel[quat_dof[:, None] + np.arange(3)], dt)
        parts.append(turned.ravel())
        addresses.append(adr.ravel())
    return jnp.concatenate(parts)[np.argsort(np.concatenate(addresses))]
