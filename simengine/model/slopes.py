"""Table fields of the derivatives of tendons' and actuators' lengths with respect to the velocities.

Most of them are zero in every state. Entries are the others: a dof, and a tendon or an actuator whose length may depend
on it. They are listed by row (tendon or actuator) and, again, by column (dof).
"""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np

_PIECES_AT_ONCE = 128
"""Pieces of paths that a kernel holds in scratch at a time, unless a single tendon has more."""

_TRN = mujoco.mjtTrn


def slope_table(mj: mujoco.MjModel, paths: dict[str, Any]) -> dict[str, Any]:
    """The derived table fields of derivatives of lengths.

    Args:
        mj: the model.
        paths: the table fields of paths.
    """
    moved = moved_bodies(mj)
    tendons, parts = _tendon_entries(mj, paths, moved)
    actuators = _actuator_entries(mj, tendons, moved)
    groups = path_groups(paths["tendon_pathnum"])
    return {
        **_by_row_and_column("ten_J", tendons),
        **_by_row_and_column("moment", actuators),
        "ten_J_partadr": np.cumsum([0, *map(len, parts)]),
        "ten_J_part": np.array([part for own in parts for part in own], dtype=int).reshape(-1, 2),
        "path_group": groups,
    }


def most_pieces(values: dict[str, Any]) -> int:
    """The most pieces of a group of tendons, whose first tendons are `path_group`."""
    adr = np.append(values["tendon_pathadr"], np.sum(values["tendon_pathnum"]))
    return int(np.diff(adr[values["path_group"]]).max(initial=0))


def moved_bodies(mj: mujoco.MjModel) -> np.ndarray:
    """(nv, nbody) bool: whether a dof moves a body."""
    moved = np.zeros((mj.nv, mj.nbody), dtype=bool)
    for body in range(1, mj.nbody):
        moved[:, body] = moved[:, mj.body_parentid[body]]
        moved[mj.body_dofadr[body] : mj.body_dofadr[body] + mj.body_dofnum[body], body] = True
    return moved


def path_groups(number: np.ndarray) -> list[int]:
    """The first tendon of each group whose pieces are in scratch at a time, and the number of tendons.

    Args:
        number: pieces of each tendon.
    """
    groups, held = [0], 0
    for tendon, own in enumerate(number.tolist()):
        if held and held + own > _PIECES_AT_ONCE:
            groups.append(tendon)
            held = 0
        held += own
    return [*groups, len(number)] if len(number) else [0]


def _tendon_entries(
    mj: mujoco.MjModel, paths: dict[str, Any], moved: np.ndarray
) -> tuple[np.ndarray, list[list[tuple[int, int]]]]:
    """(ntendon, nv) bool: which entries there are; and the parts of each, a piece and the bodies that the dof moves."""
    there = np.zeros((mj.ntendon, mj.nv), dtype=bool)
    joints = np.flatnonzero(mj.wrap_type == mujoco.mjtWrap.mjWRAP_JOINT)
    tendon_of = np.repeat(np.arange(mj.ntendon), mj.tendon_num)
    there[tendon_of[joints], mj.jnt_dofadr[mj.wrap_objid[joints]]] = True
    found: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for piece, (tendon, sites, geom) in enumerate(
        zip(paths["path_tenid"], paths["path_site"], paths["path_geom"], strict=True)
    ):
        bodies = [*mj.site_bodyid[sites], *([mj.geom_bodyid[geom]] if geom >= 0 else [])]
        own = moved[:, bodies]
        # a dof that moves none of a piece's bodies, or all of them, leaves its length as it is
        for dof in np.flatnonzero(own.any(axis=1) & ~own.all(axis=1)).tolist():
            bits = sum(1 << k for k, moves in enumerate(own[dof]) if moves)
            found.setdefault((int(tendon), dof), []).append((piece, bits))
            there[tendon, dof] = True
    return there, [found.get((tendon, dof), []) for tendon, dof in np.argwhere(there).tolist()]


def _actuator_entries(mj: mujoco.MjModel, tendons: np.ndarray, moved: np.ndarray) -> np.ndarray:
    """(nu, nv) bool: which entries there are."""
    there = np.zeros((mj.nu, mj.nv), dtype=bool)
    for u, (code, (first, second)) in enumerate(zip(mj.actuator_trntype, mj.actuator_trnid, strict=True)):
        kind = _TRN(code)
        if kind in (_TRN.mjTRN_JOINT, _TRN.mjTRN_JOINTINPARENT):
            there[u] = mj.dof_jntid == first
        elif kind == _TRN.mjTRN_TENDON:
            there[u] = tendons[first]
        elif kind in (_TRN.mjTRN_SITE, _TRN.mjTRN_SLIDERCRANK):
            there[u] = moved[:, mj.site_bodyid[first]]
            if second >= 0:
                there[u] |= moved[:, mj.site_bodyid[second]]
        else:
            there[u] = True  # adhesion acts at contacts with any body
    return there


def _by_row_and_column(name: str, there: np.ndarray) -> dict[str, Any]:
    """Entries (row, column) by row, and the rows of entries by column, with the first of each."""
    return {
        f"{name}_rowadr": np.cumsum([0, *there.sum(axis=1)]),
        f"{name}_entry": np.argwhere(there).reshape(-1, 2),
        f"{name}_coladr": np.cumsum([0, *there.sum(axis=0)]),
        f"{name}_rowind": np.argwhere(there.T)[:, 1],
    }
