"""Contacts of convex shapes whose points or normals are others than MuJoCo's, but as near by the shapes themselves.

Lines and faces that touch have many nearest points, ellipsoids around an edge many directions out, and MuJoCo's search
finds points to the root of the tolerance of its distance. Whether a contact is a right one can be told without MuJoCo's
search: its distance must be that between the shapes along its normal, and its two points must belong to the shapes. No
other direction gives less, if MuJoCo's distance is the same.

MuJoCo's distance may be wrong where the middle of a large sphere or capsule is in a prism of a height field. There the
least distance is known exactly, and must be that of the contact.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping

import mujoco
import numpy as np

from simengine.check.oracle import Evaluation, Oracle
from simengine.check.report import relative_error
from simengine.check.solids import Solid, solids
from simengine.check.solved import Listed, contacts
from simengine.fuzz.ways_out import least_way_out
from simengine.model.model import Model

NEAREST = ("contact_dist", "contact_pos", "contact_frame")
"""Fields of contacts that the nearest points decide."""
_OFF = {"float64": 1e-8, "float32": 1e-6}  # [m]
# How much longer another way out may be, relative to the depth: the search ends with a full polytope, or in float32 at
# a gap, and may miss a way that is nearly as long. The way must be the shortest one around its normal.
_ANOTHER_WAY = {"float64": 1e-5, "float32": 1e-4}
_NEAR_IT, _WAYS = (2e-3, 5e-3, 1e-2, 2e-2), 16  # [rad] by which other ways around it are turned, and how many are tried
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
    pairs = list(map(tuple, evaluation.fields["contact_geom"].tolist()))
    if ours.geoms != pairs:
        return False
    frames = np.reshape(evaluation.fields["contact_frame"], (-1, 3, 3))
    theirs = Listed(pairs, evaluation.fields["contact_dist"], evaluation.fields["contact_pos"], frames)
    often = Counter(pairs)
    oracle.forward(evaluation.state)
    for k, j in _others(ours, theirs, bounds):
        pair, on_field = pairs[k], oracle.mj.geom_type[pairs[k][0]] == _FIELD
        # a face has several contacts, which are its corners and not any of its points
        if often[pair] > 1 and not on_field:
            return False
        deeper = theirs.dist[j] - ours.dist[k]
        same = abs(deeper) <= _OFF[dtype] and _is_nearest(oracle, pair, ours, k, dtype)
        another = 0 <= deeper <= -_ANOTHER_WAY[dtype] * theirs.dist[j] and _is_nearest(
            oracle, pair, ours, k, dtype, around=True
        )
        if not same and not another and not (on_field and _is_nearest(oracle, pair, ours, k, dtype, exact=True)):
            return False
    return True


def _others(ours: Listed, theirs: Listed, bounds: Mapping[str, float]) -> list[tuple[int, int]]:
    """Our contacts that MuJoCo lacks, each with one of MuJoCo's that we lack: of the same pair, in the same order."""
    free = list(range(len(theirs.geoms)))
    lacking = []
    for k, pair in enumerate(ours.geoms):
        of_pair = sorted((j for j in free if theirs.geoms[j] == pair), key=lambda j: j != k)
        same = next((j for j in of_pair if _is_same(ours, k, theirs, j, bounds)), None)
        if same is None:
            lacking.append(k)
        else:
            free.remove(same)
    # both lists have as many of each pair, and pairs in one order
    return list(zip(lacking, free, strict=True))


def _is_same(ours: Listed, k: int, theirs: Listed, j: int, bounds: Mapping[str, float]) -> bool:
    parts = {name: name.removeprefix("contact_") for name in bounds}
    both = {name: (getattr(ours, part)[k : k + 1], getattr(theirs, part)[j : j + 1]) for name, part in parts.items()}
    return all(relative_error(*both[name])[1] <= bound for name, bound in bounds.items())


def _is_nearest(
    oracle: Oracle, pair: tuple[int, int], ours: Listed, k: int, dtype: str, exact: bool = False, around: bool = False
) -> bool:
    """Whether contact k has the distance of the shapes along its normal, and points of the shapes at its ends.

    With `exact`, also whether no other normal has less, where that is known. With `around`, whether none near it has.
    """
    normal, dist = ours.frame[k, 0], float(ours.dist[k])
    off = _OFF[dtype] * (max(1.0, abs(dist)) if exact else 1.0)
    if np.abs(ours.frame[k] - _frame(normal)).max() > _TURNED[dtype]:
        return False
    ends = [ours.pos[k] + way * dist / 2 * normal for way in (-1, 1)]
    first, second = (
        [solid for solid in solids(oracle.mj, oracle.data, geom, end) if solid.holds(end, off)]
        for geom, end in zip(pair, ends, strict=True)
    )
    for one, other in itertools.product(first, second):
        if around and not _is_least_around(one, other, normal, off):
            continue
        least = least_way_out(one, other) if exact else -dist
        if least is not None and max(abs(one.reach(normal) + other.reach(-normal) + dist), abs(least + dist)) <= off:
            return True
    return False


def _is_least_around(one: Solid, other: Solid, normal: np.ndarray, off: float) -> bool:
    """Whether the way out of two shapes along a normal (3,) is no longer than those along normals around it."""
    out = one.reach(normal) + other.reach(-normal)
    axes = _frame(normal)[1:]
    for turn, angle in itertools.product(_NEAR_IT, np.linspace(0, 2 * np.pi, _WAYS, endpoint=False)):
        way = normal + turn * (np.cos(angle) * axes[0] + np.sin(angle) * axes[1])
        way /= np.linalg.norm(way)
        if one.reach(way) + other.reach(-way) < out - off:
            return False
    return True


def _frame(normal: np.ndarray) -> np.ndarray:
    """The frame (3, 3) that MuJoCo makes of a normal (3,)."""
    first = normal / np.linalg.norm(normal)
    second = np.array([0.0, 1.0, 0.0] if abs(first[1]) < _STEEP else [0.0, 0.0, 1.0])
    second -= (first @ second) * first
    second /= np.linalg.norm(second)
    return np.stack((first, second, np.cross(first, second)))
