"""Geoms that are at their margin in the states in which a model starts, so that rounding decides whether they touch."""

from __future__ import annotations

from collections.abc import Iterator

import mujoco
import numpy as np

from simengine.check.oracle import with_margins

_EDGE = 1e-7  # [m] by which margins are changed: the rounding of float32 at a metre


def knife_edges(mj: mujoco.MjModel) -> tuple[str, ...]:
    """Pairs of geoms whose distance is their margin up to rounding, in words, in the initial state and in keyframes.

    There, an engine that rounds otherwise has a contact that this one lacks, or lacks one, from the first step on.
    """
    found = []
    models = [with_margins(mj, change) for change in (_EDGE, -_EDGE)]
    for name, qpos, mocap in _starts(mj):
        wide, narrow = (_acting(model, qpos, *mocap) for model in models)
        for geom1, geom2 in sorted(wide ^ narrow):
            found.append(f"{_geom(mj, geom1)} and {_geom(mj, geom2)} in {name}")
    return tuple(found)


def _starts(mj: mujoco.MjModel) -> Iterator[tuple[str, np.ndarray, tuple[np.ndarray, np.ndarray]]]:
    """Name, coordinates and poses of mocap bodies of the initial state and of the keyframes."""
    data = mujoco.MjData(mj)
    yield "the initial state", data.qpos.copy(), (data.mocap_pos.copy(), data.mocap_quat.copy())
    for key in range(mj.nkey):
        mujoco.mj_resetDataKeyframe(mj, data, key)
        name = mujoco.mj_id2name(mj, mujoco.mjtObj.mjOBJ_KEY, key)
        where = f"keyframe {name!r}" if name else f"keyframe number {key}"
        yield where, data.qpos.copy(), (data.mocap_pos.copy(), data.mocap_quat.copy())


def _acting(
    mj: mujoco.MjModel, qpos: np.ndarray, mocap_pos: np.ndarray, mocap_quat: np.ndarray
) -> set[tuple[int, int]]:
    """Pairs of geoms that exert forces on each other."""
    data = mujoco.MjData(mj)
    data.qpos[:], data.mocap_pos[:], data.mocap_quat[:] = qpos, mocap_pos, mocap_quat
    mujoco.mj_fwdPosition(mj, data)
    contact = data.contact
    return {tuple(sorted(pair)) for pair in contact.geom[np.asarray(contact.exclude) == 0].tolist()}


def _geom(mj: mujoco.MjModel, geom: int) -> str:
    name = mujoco.mj_id2name(mj, mujoco.mjtObj.mjOBJ_GEOM, geom)
    return f"geom {name!r}" if name else f"geom number {geom}"
