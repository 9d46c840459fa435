"""External force on every body in JAX, for one world. `cfrc_ext` as after mj_rnePostConstraint."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simengine.math.spatial import wrench_about
from simengine.math.vector import const, matmul
from simengine.stages.constraint_ref import per_row, row_directions, row_layout


def rne_post(
    m: Any,
    xfrc_applied: jax.Array,
    xipos: jax.Array,
    subtree_com: jax.Array,
    contact_pos: jax.Array,
    contact_frame: jax.Array,
    contact_active: jax.Array,
    efc_active: jax.Array,
    efc_force: jax.Array,
) -> tuple[jax.Array]:
    """cfrc_ext (nbody, 6): torque [N m] about the com of the body's tree and force [N], in the world's orientation.

    Args: xfrc_applied (nbody, 6) force then torque, xipos (nbody, 3), subtree_com (nbody, 3), contact_pos (nslot, 3),
        contact_frame (nslot, 9), contact_active (nslot,) bool, efc_active (nefc_max,) bool, efc_force (nefc_max,).
    """
    # (1) applied forces act at the body's centre of mass
    root_com = subtree_com[m.body_rootid]
    cfrc_ext = wrench_about(root_com, xipos, xfrc_applied[:, :3])
    cfrc_ext = cfrc_ext + jnp.concatenate([xfrc_applied[:, 3:], jnp.zeros_like(xfrc_applied[:, 3:])], axis=-1)
    cfrc_ext = cfrc_ext * const(np.arange(m.nbody) > 0, cfrc_ext)[:, None]
    if not m.nslot:
        return (cfrc_ext,)

    # (2) force of every contact row in the world
    layout = row_layout(m)
    row_force = jnp.where(efc_active, efc_force, 0.0)[layout.limit_id.size :]
    row_force = jnp.where(per_row(layout, contact_active), row_force, 0.0)
    force = row_directions(layout, contact_frame) * row_force[:, None]

    # (3) on the second body as it is, on the first reversed, the world left out
    for body, sign in zip(layout.contact_body.T, (-1.0, 1.0), strict=True):
        if body.any():
            spread = sign * (np.arange(1, m.nbody)[:, None] == body[None, :])
            wrench = wrench_about(root_com[body], per_row(layout, contact_pos), force)
            cfrc_ext = cfrc_ext.at[1:].add(matmul(const(spread, force), wrench))
    return (cfrc_ext,)
