"""External force on every body in JAX, for one world; `cfrc_ext` as after mj_rnePostConstraint.

This is the JAX form of `rne_post_general`, and of `rne_post` for the rows that it handles.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simengine.physics.constraints.equality_jax import wrenches
from simengine.physics.constraints.row_layout_jax import per_row, row_directions, row_layout
from simengine.physics.math.forest_jax import forest_of
from simengine.physics.math.spatial_jax import wrench_about
from simengine.physics.math.vector_jax import const, matmul


def rne_post(
    m: Any,
    xfrc_applied: jax.Array,
    xpos: jax.Array,
    xquat: jax.Array,
    xmat: jax.Array,
    xipos: jax.Array,
    subtree_com: jax.Array,
    contact_pos: jax.Array,
    contact_frame: jax.Array,
    contact_active: jax.Array,
    efc_active: jax.Array,
    efc_force: jax.Array,
) -> tuple[jax.Array]:
    """cfrc_ext (nbody, 6): torque [N m] about the com of the body's tree, and force [N], in world axes.

    Args: xfrc_applied (nbody, 6) force then torque, xpos (nbody, 3), xquat (nbody, 4), xmat (nbody, 9), xipos
        (nbody, 3), subtree_com (nbody, 3), contact_pos (nslot, 3), contact_frame (nslot, 9), contact_active (nslot,)
        bool, efc_active (nefc_max,) bool, efc_force (nefc_max,).
    """
    # (1) applied forces act at the body's centre of mass
    root_com = subtree_com[m.body_rootid]
    cfrc_ext = wrench_about(root_com, xipos, xfrc_applied[:, :3])
    cfrc_ext = cfrc_ext + jnp.concatenate([xfrc_applied[:, 3:], jnp.zeros_like(xfrc_applied[:, 3:])], axis=-1)
    cfrc_ext = cfrc_ext * const(np.arange(m.nbody) > 0, cfrc_ext)[:, None]
    efc_force = jnp.where(efc_active, efc_force, 0.0)
    if m.nslot:
        # (2) force and torque of every contact row, in the world frame
        layout = row_layout(m)
        row_force = jnp.where(per_row(layout, contact_active), efc_force[layout.first_contact :], 0.0)[:, None]
        force, torque = row_directions(layout, contact_frame)
        force, torque = force * row_force, None if torque is None else torque * row_force

        # (3) the force acts on the second body, its reaction on the first; the world body gets none
        for body, sign in zip(layout.contact_body.T, (-1.0, 1.0), strict=True):
            wrench = wrench_about(root_com[body], per_row(layout, contact_pos), force, torque)
            cfrc_ext = _add(m, cfrc_ext, body, sign, wrench)
    if ((np.asarray(m.eq_rows) > 0) & (np.asarray(m.eq_type) <= 1)).any():
        # (2), (3) connects and welds: the force acts on the first body, its reaction on the second
        at, force, torque = wrenches(m, xpos, xquat, xmat, efc_force)
        for side, sign in enumerate((1.0, -1.0)):
            body = at.body[:, side]
            wrench = wrench_about(root_com[body], at.point[:, side], force, torque)
            cfrc_ext = _add(m, cfrc_ext, body, sign, wrench)
    return (cfrc_ext,)


def _add(m: Any, cfrc_ext: jax.Array, body: np.ndarray, sign: float, wrench: jax.Array) -> jax.Array:
    """cfrc_ext with `sign` times wrenches (n, 6) added to the bodies (n,), except to the world body."""
    if not body.any():
        return cfrc_ext
    if forest_of(m) is not None:
        return cfrc_ext.at[body].add(sign * wrench * const(body > 0, wrench)[:, None])
    spread = sign * (np.arange(1, m.nbody)[:, None] == body[None, :])
    return cfrc_ext.at[1:].add(matmul(const(spread, wrench), wrench))
