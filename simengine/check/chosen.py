"""Contacts that rounding decides, or that MuJoCo does not find. States with such contacts are not compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from copy import copy

import mujoco
import numpy as np

from simengine.check.boxes import SparseBoxes
from simengine.check.optimal import are_clear, are_optimal

_NUDGES = 6  # changes of the coordinates that are tried to see whether they give other contacts
_NUDGE = {"float64": 1e-10, "float32": 1e-6}  # size of the changes: more than the rounding of a precision
_ELSEWHERE = 1e-4  # [m] least distance of a contact that counts as another one
_MOST = 4  # most contacts of two faces
_SAME = 1e-7  # [m] distance of contacts below which they are copies of each other
# Cosine to the axis above which a normal is that of a cylinder's cap; or may be, by the rounding of depths.
_ALONG = {"float64": 1 - 1e-9, "float32": 1 - 1e-6}
_ALONG_AXIS = 1 - 1e-8  # cosine of two axes above which they count as parallel
_PLANE, _SPHERE, _CAPSULE, _CYLINDER, _BOX, _MESH = 0, 2, 3, 5, 6, 7  # MuJoCo's mjtGeom


def find_contacts(mj: mujoco.MjModel, data: mujoco.MjData) -> None:
    """The part of `mj_fwdPosition` that contacts and rows depend on, up to the contacts."""
    mujoco.mj_kinematics(mj, data)
    mujoco.mj_comPos(mj, data)
    mujoco.mj_tendon(mj, data)
    mujoco.mj_collision(mj, data)


class Chosen:
    """Decides whether rounding determines contacts, or MuJoCo misses some; see also `simengine.check.optimal`.

    The contacts of a mesh and a plane, and of flat faces, are corners, and small differences may decide which:

    - Of more than four corners, four are chosen by the area that they span, and areas may be equal.
    - A cylinder's cap is a regular polygon, so many areas are equal. Small changes of the state need not show that.
    - If a corner touches a cap, the line on the cylinder's side that is tried with it may be anywhere around the
      cylinder.
    - If a cylinder lies level on a plane, either end may be the lower one, which has more contacts.
    - The contacts of a cylinder that stands on a plane turn with its lowest point, which is anywhere on the rim.
    - A capsule that lies along a side or an edge of a box may touch it at either end, or at both.
    - MuJoCo's choice of four corners may hold one twice. This engine's holds others then, which span more.
    - Boxes farther apart than their margin may touch or not by MuJoCo's frame; see `simengine.check.boxes`.

    Spheres, and the nearest spheres in capsules, may have the same centre, as those of capsules whose axes lie on one
    line. Nothing but rounding says then to which side the normal points. If the axes cross, it is across both.

    Args:
        mj: the model.
        dtype: "float32" or "float64", the precision that is compared with MuJoCo.
    """

    def __init__(self, mj: mujoco.MjModel, dtype: str):
        self._dtype = dtype
        self._kind = mj.geom_type.tolist()
        self._single = copy(mj)
        self._single.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_MULTICCD)
        self._data = mujoco.MjData(self._single)
        self._boxes = SparseBoxes(mj)

    def are_decided(self, model: mujoco.MjModel, data: mujoco.MjData) -> bool:
        """Whether rounding decides none of the contacts in `data`, and all of them are right.

        Call it after `find_contacts`; it changes `data`.
        """
        if self._lies_level(data) or self._has_copies(data) or self._has_same_centres(data) or self._boxes.are_in(data):
            return False
        geoms = list(map(tuple, data.contact.geom.tolist()))
        pairs = Counter(pair for pair in geoms if self._lies_flat(*pair))
        stands = any((self._kind[first], self._kind[second]) == (_PLANE, _CYLINDER) for first, second in geoms)
        if not pairs and not stands:
            return True
        self._find_single(data)
        if not are_optimal(self._single, self._data):
            return False
        caps = {p: number for p, number in pairs.items() if _CYLINDER in (self._kind[p[0]], self._kind[p[1]])}
        if any(number == _MOST for number in caps.values()) or (caps and self._on_a_cap(caps)):
            return False
        meshes = any(self._kind[second] == _MESH for _, second in pairs)
        return all(np.abs(pos - first).max() < _ELSEWHERE for first, pos in self._nudged(model, data, meshes))

    def _nudged(
        self, model: mujoco.MjModel, data: mujoco.MjData, meshes: bool
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Positions of the contacts in `data`, and in slightly changed states.

        The changes are larger in float32. With meshes, bodies are also rotated relative to their parents.
        """
        qpos, quat, first = data.qpos.copy(), model.body_quat.copy(), data.contact.pos.copy()
        rng, nudge = np.random.default_rng(0), _NUDGE[self._dtype]
        try:
            for _ in range(_NUDGES):
                data.qpos[:] = qpos + rng.choice((-nudge, nudge), size=qpos.shape)
                if meshes:
                    model.body_quat[:] = quat + rng.choice((-nudge, nudge), size=quat.shape)
                find_contacts(model, data)
                pos = data.contact.pos
                yield first, pos.copy() if pos.shape == first.shape else np.full_like(first, np.inf)
        finally:
            model.body_quat[:] = quat

    def _lies_flat(self, geom1: int, geom2: int) -> bool:
        """Whether the contacts of two geoms, the second of the higher type, can be chosen among corners."""
        first, second = self._kind[geom1], self._kind[geom2]
        by_convex = first in (_CAPSULE, _CYLINDER, _BOX, _MESH) and (second == _MESH or _CYLINDER in (first, second))
        return by_convex or (first, second) in ((_PLANE, _MESH), (_CAPSULE, _BOX))

    def _lies_level(self, data: mujoco.MjData) -> bool:
        """Whether a cylinder lies level in a plane, so deep that either end may be the lower one with more contacts."""
        for pair, number in Counter(map(tuple, data.contact.geom.tolist())).items():
            if (self._kind[pair[0]], self._kind[pair[1]]) == (_PLANE, _CYLINDER) and number > 2:
                normal, axis = (data.geom_xmat[geom].reshape(3, 3)[:, 2] for geom in pair)
                if abs(normal @ axis) < _NUDGE[self._dtype]:
                    return True
        return False

    def _has_same_centres(self, data: mujoco.MjData) -> bool:
        """Whether two spheres touch, or spheres in capsules, whose centres are the same but for rounding."""
        for pair, dist in zip(data.contact.geom.tolist(), data.contact.dist.tolist(), strict=True):
            if all(self._kind[geom] in (_SPHERE, _CAPSULE) for geom in pair):
                between = dist + float(self._single.geom_size[pair, 0].sum())
                axes = [data.geom_xmat[geom].reshape(3, 3)[:, 2] for geom in pair if self._kind[geom] == _CAPSULE]
                crossing = len(axes) == 2 and abs(axes[0] @ axes[1]) < _ALONG_AXIS
                if between < _NUDGE[self._dtype] and not crossing:
                    return True
        return False

    def _has_copies(self, data: mujoco.MjData) -> bool:
        """Whether two faces have four contacts, of which two are the same."""
        pairs = list(map(tuple, data.contact.geom.tolist()))
        for pair, number in Counter(pairs).items():
            if number == _MOST and self._lies_flat(*pair):
                pos = data.contact.pos[[other == pair for other in pairs]]
                between = np.abs(pos[:, None] - pos[None]).max(axis=2)
                if between[~np.eye(number, dtype=bool)].min() < _SAME:
                    return True
        return False

    def are_clear(self, data: mujoco.MjData) -> bool:
        """Whether it is certain which corners of meshes touch in the state in `data`."""
        self._find_single(data)
        return are_clear(self._single, self._data, self._dtype)

    def _find_single(self, data: mujoco.MjData) -> None:
        """Compute a single contact for each pair of geoms in a state, into `_data`."""
        single = self._data
        single.qpos[:], single.mocap_pos[:], single.mocap_quat[:] = data.qpos, data.mocap_pos, data.mocap_quat
        find_contacts(self._single, single)

    def _on_a_cap(self, pairs: dict[tuple[int, int], int]) -> bool:
        """Whether a pair without a capsule that has one or two contacts touches along the axis of a cylinder."""
        single = self._data
        for pair, frame in zip(map(tuple, single.contact.geom.tolist()), single.contact.frame, strict=True):
            if self._kind[pair[0]] == _CAPSULE or pairs.get(pair, _MOST) > 2:
                continue
            axes = [single.geom_xmat[geom].reshape(3, 3)[:, 2] for geom in pair if self._kind[geom] == _CYLINDER]
            if any(abs(axis @ frame[:3]) > _ALONG[self._dtype] for axis in axes):
                return True
        return False
