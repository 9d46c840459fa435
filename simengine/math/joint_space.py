"""Motion of the generalised coordinates along generalised velocities."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simengine.math import quaternion, tree


def advance(m: Any, qpos: jax.Array, qvel: jax.Array, dt: jax.Array | float) -> jax.Array:
    """qpos (nq,) after moving with qvel (nv,) held for dt [s]; quaternions turn on their sphere.

    Quantities as after mj_integratePos.
    """
    scalar_adr, scalar_dof = tree.scalar_joints(m)
    parts, addresses = [qpos[scalar_adr] + qvel[scalar_dof] * dt], [scalar_adr]
    free_adr, free_dof = tree.free_dofs(m)
    if free_adr.size:
        adr, dof = free_adr[:, None], free_dof[:, None]
        moved = qpos[adr + np.arange(3)] + qvel[dof + np.arange(3)] * dt
        turned = quaternion.integrate(qpos[adr + np.arange(3, 7)], qvel[dof + np.arange(3, 6)], dt)
        parts.append(jnp.concatenate([moved, turned], axis=1).ravel())
        addresses.append((adr + np.arange(7)).ravel())
    return jnp.concatenate(parts)[np.argsort(np.concatenate(addresses))]
