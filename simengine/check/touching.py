"""Contacts whose points are others than MuJoCo's, but of the same features, where rounding decides which corners touch.

Along edges that are parallel but for rounding, and on faces, the shapes are as near at many points. The distances and
normals of such contacts are MuJoCo's. Their points may be any at which the shapes touch, or are nearest.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from simengine.check.optimal import slack_of
from simengine.check.oracle import Evaluation, Oracle
from simengine.check.order import contact_order, marks
from simengine.check.solids import Solid, solids
from simengine.check.solved import Listed, contacts
from simengine.check.states import STATE_ARRAYS
from simengine.model.model import Model

_TOLD_BY = ("dist", "pos", "frame")


def touching_elsewhere(
    model: Model,
    oracle: Oracle,
    evaluations: Mapping[int, Evaluation],
    bounds: Sequence[float],
    backend: str,
    dtype: str,
) -> set[int]:
    """Those of the states in which each contact is MuJoCo's, or has other points of the same features.

    Args:
        model: the model.
        oracle: MuJoCo on it.
        evaluations: states by their numbers, and MuJoCo's results.
        bounds: largest relative errors of distances, points and frames that count as none.
        backend: "cuda", "host", "jax" or "auto".
        dtype: "float32" or "float64".
    """
    unclear = {i: e for i, e in evaluations.items() if not _is_clear(oracle, e)}
    if not unclear:
        return set()
    found = zip(unclear.items(), contacts(model, list(unclear.values()), backend, dtype), strict=True)
    return {i for (i, evaluation), ours in found if _touches(oracle, evaluation, ours, bounds, dtype)}


def _is_clear(oracle: Oracle, evaluation: Evaluation) -> bool:
    return oracle.is_clear({name: getattr(evaluation.state, name) for name in STATE_ARRAYS})


def _touches(oracle: Oracle, evaluation: Evaluation, ours: Listed, bounds: Sequence[float], dtype: str) -> bool:
    pairs = list(map(tuple, evaluation.fields["contact_geom"].tolist()))
    if ours.geoms != pairs:
        return False
    theirs = [evaluation.fields[f"contact_{name}"] for name in _TOLD_BY]
    order = contact_order(np.array(pairs), ours.marks, marks(*theirs))
    own = (ours.dist, ours.pos, ours.frame)
    each = zip(own, theirs, bounds, strict=True)
    near, same, level = (_are_equal(a, b.reshape(a.shape)[order], bound) for a, b, bound in each)
    if not (near.all() and level.all()):
        return False
    often = Counter(pairs)
    oracle.forward(evaluation.state)
    # a face has several contacts, which are its corners and not any of its points
    return all(
        often[pairs[k]] == 1 and _is_between(oracle, pairs[k], ours, k, dtype) for k in np.flatnonzero(~same).tolist()
    )


def _are_equal(ours: np.ndarray, theirs: np.ndarray, bound: float) -> np.ndarray:
    """Of each contact, whether the relative error of a field is within a bound."""
    most = bound * max(1.0, float(np.abs(theirs).max(initial=0.0)))
    return np.asarray((np.abs(ours - theirs).reshape(len(ours), -1) <= most).all(axis=1))


def _is_between(oracle: Oracle, pair: tuple[int, int], ours: Listed, k: int, dtype: str) -> bool:
    """Whether contact k has the distance of the shapes along its normal, and points of the shapes at its ends."""
    normal, dist, off = ours.frame[k, 0], float(ours.dist[k]), slack_of(oracle.mj, pair, dtype)
    ends = [ours.pos[k] + way * dist / 2 * normal for way in (-1, 1)]
    first, second = (_holding(oracle, geom, end, off) for geom, end in zip(pair, ends, strict=True))
    return any(
        abs(one.reach(normal) + other.reach(-normal) + dist) <= off for one, other in itertools.product(first, second)
    )


def _holding(oracle: Oracle, geom: int, point: np.ndarray, off: float) -> list[Solid]:
    return [solid for solid in solids(oracle.mj, oracle.data, geom, point) if solid.holds(point, off)]
