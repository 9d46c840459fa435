"""Contacts of convex shapes whose points or normals are others than MuJoCo's, but as near by the shapes themselves.

Lines and faces that touch have many nearest points, ellipsoids around an edge many directions out, and MuJoCo's search
finds points to the root of the tolerance of its distance. Whether a contact is a right one can be told without MuJoCo's
search: its distance must be that between the shapes along its normal, and its two points must belong to the shapes. No
other direction gives less, if MuJoCo's distance is the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import mujoco
import numpy as np

from simengine.check.oracle import Evaluation, Oracle
from simengine.check.order import contact_order, marks
from simengine.check.report import relative_error
from simengine.check.solved import Listed, contacts
from simengine.fuzz.solids import solids
from simengine.model.model import Model

NEAREST = ("contact_pos", "contact_frame")
"""Fields of contacts that the nearest points decide."""
_OFF = {"float64": 1e-8, "float32": 1e-6}  # [m]
_TURNED = {"float64": 1e-9, "float32": 1e-5}  # largest error of an axis of a frame
_STEEP = 0.5  # y of a normal from which its frame is made with the z axis
_FIELD = int(mujoco.mjtGeom.mjGEOM_HFIELD)


def as_near(
    model: Model,
    oracle: Oracle,
    evaluations: Mapping[int, Evaluation],
    bounds: Mapping[str, float],
    backend: str,
    dtype: str,
) -> set[int]:
    """Those of the states in which every contact is MuJoCo's, or as near.

    Args:
        model: the model.
        oracle: MuJoCo on it.
        evaluations: states by their numbers, and MuJoCo's results.
        bounds: largest relative error of fields of `NEAREST` that counts as none.
        backend: "cuda", "host", "jax" or "auto".
        dtype: "float32" or "float64".
    """
    if not evaluations:
        return set()
    found = zip(evaluations.items(), contacts(model, list(evaluations.values()), backend, dtype), strict=True)
    return {i for (i, evaluation), ours in found if _all_as_near(oracle, evaluation, ours, bounds, dtype)}


def _all_as_near(oracle: Oracle, evaluation: Evaluation, ours: Listed, bounds: Mapping[str, float], dtype: str) -> bool:
    fields = evaluation.fields
    pairs = fields["contact_geom"]
    if ours.geoms != list(map(tuple, pairs.tolist())):
        return False
    theirs = [fields[f"contact_{name}"] for name in ("dist", "pos", "frame")]
    order = contact_order(pairs, ours.marks, marks(*theirs))
    dist, pos, frame = (values[order] for values in theirs)
    often = Counter(ours.geoms)
    oracle.forward(evaluation.state)
    for k, pair in enumerate(ours.geoms):
        errors = {
            "contact_pos": relative_error(ours.pos[k], pos[k])[1],
            "contact_frame": relative_error(ours.frame[k], frame[k].reshape(3, 3))[1],
        }
        if all(errors[name] <= bound for name, bound in bounds.items()):
            continue
        # a face has several contacts, which are its corners and not any of its points
        if often[pair] > 1 and oracle.mj.geom_type[pair[0]] != _FIELD:
            return False
        if abs(ours.dist[k] - dist[k]) > _OFF[dtype] or not _is_nearest(oracle, pair, ours, k, dtype):
            return False
    return True


def _is_nearest(oracle: Oracle, pair: tuple[int, int], ours: Listed, k: int, dtype: str) -> bool:
    """Whether contact k has the distance of the shapes along its normal, and points of the shapes at its ends."""
    normal, off = ours.frame[k, 0], _OFF[dtype]
    if np.abs(ours.frame[k] - _frame(normal)).max() > _TURNED[dtype]:
        return False
    ends = [ours.pos[k] + way * ours.dist[k] / 2 * normal for way in (-1, 1)]
    first, second = (
        [solid for solid in solids(oracle.mj, oracle.data, geom, end) if solid.holds(end, off)]
        for geom, end in zip(pair, ends, strict=True)
    )
    overlaps = (one.reach(normal) + other.reach(-normal) for one in first for other in second)
    return any(abs(overlap + ours.dist[k]) <= off for overlap in overlaps)


def _frame(normal: np.ndarray) -> np.ndarray:
    """The frame (3, 3) that MuJoCo makes of a normal (3,)."""
    first = normal / np.linalg.norm(normal)
    second = np.array([0.0, 1.0, 0.0] if abs(first[1]) < _STEEP else [0.0, 0.0, 1.0])
    second -= (first @ second) * first
    second /= np.linalg.norm(second)
    return np.stack((first, second, np.cross(first, second)))
