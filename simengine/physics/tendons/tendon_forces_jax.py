"""Forces of spatial tendons on the bodies along their paths, in JAX, for one world.

MuJoCo counts them among the external forces, `cfrc_ext` after mj_rnePostConstraint, whether they come from springs and
dampers, from actuators or from constraint rows.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simengine.physics.actuation.actuators_jax import TRN_TENDON
from simengine.physics.constraints.equality_jax import TENDON
from simengine.physics.constraints.row_layout_jax import EQUALITY, FRICTION_TENDON, LIMIT_TENDON, row_layout
from simengine.physics.math.vector_jax import const, matmul
from simengine.physics.passive.springs_jax import tendon_pull
from simengine.physics.tendons.tendon_jax import pieces


def tendon_forces(
    m: Any,
    xpos: jax.Array,
    xquat: jax.Array,
    subtree_com: jax.Array,
    geom_xpos: jax.Array,
    geom_xmat: jax.Array,
    ten_length: jax.Array,
    ten_velocity: jax.Array,
    actuator_force: jax.Array,
    efc_active: jax.Array,
    efc_force: jax.Array,
    cfrc_ext: jax.Array,
) -> tuple[jax.Array]:
    """cfrc_ext (nbody, 6) with the pulls of spatial tendons added.

    Args: xpos (nbody, 3), xquat (nbody, 4), subtree_com (nbody, 3), geom_xpos (ngeom, 3), geom_xmat (ngeom, 9),
        ten_length, ten_velocity (ntendon,), actuator_force (nu,), efc_active (nefc_max,) bool, efc_force (nefc_max,),
        cfrc_ext (nbody, 6).
    """
    if not m.npath:
        return (cfrc_ext,)
    # (1) pieces of spatial tendons
    _, pulls, bodies = pieces(m, xpos, xquat, subtree_com, geom_xpos, geom_xmat)

    # (2) force along each tendon, from springs and dampers, actuators and constraint rows
    force = tendon_pull(m, np.arange(m.ntendon), ten_length, ten_velocity)
    number = np.arange(m.ntendon)[:, None]
    on = np.where(np.asarray(m.actuator_trntype) == TRN_TENDON, np.asarray(m.actuator_trnid)[:, 0], -1)
    force = force + matmul(const((number == on) * np.asarray(m.actuator_gear)[:, 0], force), actuator_force)
    force = force + matmul(_row_shares(m, ten_length), jnp.where(efc_active, efc_force, 0.0))

    # (3) force vectors on all bodies except the world body
    scaled = pulls * (force[m.path_tenid] * const(m.path_scale, force))[None, :, None]
    spread = (np.arange(m.nbody)[:, None] == bodies.ravel()) & (bodies.ravel() > 0)
    return (cfrc_ext + matmul(const(spread, force), scaled.reshape(-1, 6)),)


def _row_shares(m: Any, ten_length: jax.Array) -> jax.Array:
    """Force along each tendon per unit of force of each row slot, (ntendon, nefc_max)."""
    layout = row_layout(m)
    number = np.arange(m.ntendon)[:, None]
    sign = np.where(layout.type == LIMIT_TENDON, np.where(layout.sub == 1, -1.0, 1.0), 1.0)
    own = (layout.type == LIMIT_TENDON) | (layout.type == FRICTION_TENDON)
    shares = const((number == layout.id) * own * sign, ten_length)
    rows = np.flatnonzero(layout.type == EQUALITY)
    rows = rows[np.asarray(m.eq_type)[layout.id[rows]] == TENDON]
    if not rows.size:
        return shares
    first, second = np.asarray(m.eq_obj)[layout.id[rows]].T
    x = ten_length[second] - const(np.asarray(m.tendon_length0)[second], ten_length)
    c = const(np.asarray(m.eq_data)[layout.id[rows]], ten_length)
    slope = c[:, 1] + x * (2.0 * c[:, 2] + x * (3.0 * c[:, 3] + x * 4.0 * c[:, 4]))
    other = const((number == second) & (second >= 0), ten_length) * slope[None, :]
    return shares.at[:, rows].add(const(number == first, ten_length) - other)
