"""Boxes that are apart, and that MuJoCo lists as touching or not by the frame in which it sorts bodies.

Two boxes have contacts where the best of 15 axes separates them by less than their margin and gap. Where corners or
edges are nearest, that is less than their distance, by up to a factor of sqrt(3). The boxes along other axes, by which
MuJoCo finds pairs of bodies, may be farther apart then than the margin: they turn with the bodies' covariance.
"""

from __future__ import annotations

import itertools

import mujoco
import numpy as np

_BEYOND_AXES = 3.0**0.5


class SparseBoxes:
    """Finds boxes whose contacts depend on that frame.

    Args:
        mj: the model.
    """

    def __init__(self, mj: mujoco.MjModel):
        boxes = np.flatnonzero(mj.geom_type == mujoco.mjtGeom.mjGEOM_BOX).tolist()
        listed = {(min(p), max(p)): k for k, p in enumerate(zip(mj.pair_geom1, mj.pair_geom2, strict=True))}
        self._pairs: list[tuple[int, int, float]] = []
        for one, other in itertools.combinations(boxes, 2):
            reach = _reach(mj, one, other, listed.get((one, other)))
            if reach > 0 and mj.body_weldid[mj.geom_bodyid[one]] != mj.body_weldid[mj.geom_bodyid[other]]:
                self._pairs.append((one, other, reach))
        self._mj, self._segment = mj, np.zeros(6)

    def are_in(self, data: mujoco.MjData) -> bool:
        """Whether there are such boxes in a state that was evaluated up to the poses of geoms."""
        mj = self._mj
        for one, other, reach in self._pairs:
            centres = data.geom_xpos[other] - data.geom_xpos[one]
            if np.linalg.norm(centres) > mj.geom_rbound[[one, other]].sum() + reach:
                continue
            most = _BEYOND_AXES * reach
            if mujoco.mj_geomDistance(mj, data, one, other, most, self._segment) > reach and (
                separation(data, one, other, mj.geom_size[[one, other]]) < reach
            ):
                return True
        return False


def _reach(mj: mujoco.MjModel, one: int, other: int, number: int | None) -> float:
    """Distance below which contacts are listed; 0 for geoms that do not collide."""
    if number is not None:
        margin, gap = mj.pair_margin[number], mj.pair_gap[number]
    else:
        types, affinities = mj.geom_contype[[one, other]], mj.geom_conaffinity[[one, other]]
        if not types[0] & affinities[1] and not types[1] & affinities[0]:
            return 0.0
        margin, gap = mj.geom_margin[[one, other]].sum(), mj.geom_gap[[one, other]].sum()
    if mj.opt.enableflags & int(mujoco.mjtEnableBit.mjENBL_OVERRIDE):
        margin = mj.opt.o_margin
    return float(margin + gap)


def separation(data: mujoco.MjData, one: int, other: int, size: np.ndarray) -> float:
    """What the best axis says of the distance [m] of two boxes of half sizes (2, 3)."""
    first, second = data.geom_xmat[one].reshape(3, 3).T, data.geom_xmat[other].reshape(3, 3).T
    across = np.cross(first[:, None], second[None]).reshape(9, 3)
    length = np.linalg.norm(across, axis=1)
    crossed = length > 1e-8
    axes = np.concatenate((first, second, across[crossed] / length[crossed, None]))
    reach = np.abs(axes @ first.T) @ size[0] + np.abs(axes @ second.T) @ size[1]
    return float((np.abs(axes @ (data.geom_xpos[other] - data.geom_xpos[one])) - reach).max())
