"""Contact forces of a world from its constraint rows, and arrows of forces."""

from __future__ import annotations

from typing import NamedTuple

import mujoco
import numpy as np

from simengine.records import Constraints, Contacts

_GRAVITY = 9.81  # for models without [m/s^2]
_ELLIPTIC = int(mujoco.mjtCone.mjCONE_ELLIPTIC)
_OVERRIDE = int(mujoco.mjtEnableBit.mjENBL_OVERRIDE)


class Forces(NamedTuple):
    """Forces of a world.

    Attributes:
        pos: where they act, world frame, (n, 3) [m].
        force: world frame, (n, 3) [N].
    """

    pos: np.ndarray
    force: np.ndarray


def contact_forces(
    mj: mujoco.MjModel, contacts: Contacts, rows: Constraints, geom_friction: np.ndarray | None = None
) -> Forces:
    """Return the force of every contact, as MuJoCo's viewer shows it: on the body with the higher id.

    Args:
        mj: the model.
        contacts: contacts of a world.
        rows: its constraint rows.
        geom_friction: friction of the world's geoms, (ngeom, 3); None for the model's.
    """
    friction = mj.geom_friction if geom_friction is None else geom_friction
    local = np.zeros((contacts.ncon, 3))
    for contact in np.flatnonzero(contacts.efc_address >= 0):
        first, dim = int(contacts.efc_address[contact]), int(contacts.dim[contact])
        if dim == 1 or mj.opt.cone == _ELLIPTIC:
            local[contact, : min(dim, 3)] = rows.force[first : first + min(dim, 3)]
            continue
        edges = rows.force[first : first + 2 * (dim - 1)].reshape(-1, 2)
        tangent = _sliding(mj, int(contacts.geom1[contact]), int(contacts.geom2[contact]), friction)
        local[contact] = (edges.sum(), *(tangent * (edges[:2, 0] - edges[:2, 1])))
    force = np.einsum("ci,cij->cj", local, contacts.frame)
    body1, body2 = mj.geom_bodyid[contacts.geom1], mj.geom_bodyid[contacts.geom2]
    return Forces(np.array(contacts.pos), np.where((body1 > body2)[:, None], -force, force))


def _sliding(mj: mujoco.MjModel, geom1: int, geom2: int, friction: np.ndarray) -> np.ndarray:
    """Return the two coefficients of sliding friction of a pair of geoms, by MuJoCo's rules."""
    if mj.opt.enableflags & _OVERRIDE:
        return np.array(mj.opt.o_friction[:2])
    pairs = np.stack([mj.pair_geom1, mj.pair_geom2], 1)
    explicit = np.flatnonzero((np.sort(pairs, axis=1) == sorted((geom1, geom2))).all(1))
    if len(explicit):
        return np.array(mj.pair_friction[explicit[0], :2])
    priority1, priority2 = int(mj.geom_priority[geom1]), int(mj.geom_priority[geom2])
    if priority1 != priority2:
        return np.repeat(friction[geom1 if priority1 > priority2 else geom2, 0], 2)
    return np.repeat(max(friction[geom1, 0], friction[geom2, 0]), 2)


def arrows(mj: mujoco.MjModel, forces: Forces) -> np.ndarray:
    """Return an arrow from where each force acts, (n, 2, 3) [m]; forces of zero have none.

    The model's weight is half as long as the model is large.
    """
    acting = np.linalg.norm(forces.force, axis=1) > 0
    start = forces.pos[acting]
    gravity = float(np.linalg.norm(mj.opt.gravity)) or _GRAVITY
    metres_per_newton = mj.stat.extent / (2 * mj.body_subtreemass[0] * gravity)
    return np.stack([start, start + metres_per_newton * forces.force[acting]], 1)
