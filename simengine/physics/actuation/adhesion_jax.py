"""Transmissions to the contacts of a body in JAX, for one world. Quantities as after mj_transmission.

The force pulls along the normals of all contacts of the body's geoms and is shared equally among them, those in the gap
included.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simengine.physics.actuation.actuators_jax import TRN_BODY
from simengine.physics.math import tree_jax as tree
from simengine.physics.math.spatial_jax import wrench_about
from simengine.physics.math.vector_jax import const, matmul


def adhesion(
    m: Any,
    qvel: jax.Array,
    subtree_com: jax.Array,
    cdof: jax.Array,
    contact_pos: jax.Array,
    contact_frame: jax.Array,
    contact_active: jax.Array,
    actuator_velocity: jax.Array,
    actuator_moment: jax.Array,
) -> tuple[jax.Array, jax.Array]:
    """actuator_velocity (nu,) and actuator_moment (nu, nv), with the entries of adhesion actuators filled in.

    Args: qvel (nv,), subtree_com (nbody, 3), cdof (nv, 6), contact_pos (nslot, 3), contact_frame (nslot, 9),
        contact_active (nslot,) bool, actuator_velocity (nu,), actuator_moment (nu, nv).
    """
    stuck = np.flatnonzero(np.asarray(m.actuator_trntype) == TRN_BODY)
    if not stuck.size or not m.nslot:
        return actuator_velocity, actuator_moment
    bodies = np.asarray(m.geom_bodyid)[np.stack([m.cand_geom1, m.cand_geom2])[:, m.slot_cand]]
    closing = jnp.zeros((m.nslot, m.nv), cdof.dtype)
    for body, sign in zip(bodies, (1.0, -1.0), strict=True):
        pull = wrench_about(subtree_com[np.asarray(m.body_rootid)[body]], contact_pos, sign * contact_frame[:, :3])
        closing = closing + matmul(pull, cdof.T) * const(tree.body_dofs(m)[body], cdof)
    # (1) moment: mean over the contacts
    target = np.asarray(m.actuator_trnid)[stuck, 0]
    own = const((bodies[:, None, :] == target[None, :, None]).any(axis=0), cdof)
    touching = own * contact_active.astype(cdof.dtype)[None, :]
    number = touching.sum(axis=1, keepdims=True)
    moment = matmul(touching, jnp.where(contact_active[:, None], closing, 0.0)) / jnp.maximum(number, 1.0)
    # (2) velocity, which MuJoCo leaves at zero for an actuator that moves nothing
    velocity = matmul(moment, qvel) if m.opt_actuation else jnp.zeros(stuck.size, cdof.dtype)
    return actuator_velocity.at[stuck].set(velocity), actuator_moment.at[stuck].set(moment)
