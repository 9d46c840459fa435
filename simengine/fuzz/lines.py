"""Contacts on a line along which shapes touch equally deep, such as an edge that is parallel to the side of a cylinder.

If such an edge is off by less than the rounding of poses, MuJoCo's point is at either of its ends, and an engine of
that precision cannot tell any of its points from another.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import mujoco
import numpy as np

from simengine.check.chosen import find_contacts
from simengine.check.oracle import Evaluation
from simengine.check.order import contact_order, marks
from simengine.check.segments import with_moved_geoms
from simengine.check.solved import contacts
from simengine.model.model import Model

_MOTION = {"float64": 1e-10, "float32": 1e-6}  # [m or rad] somewhat more than the rounding of poses
_TURNS = 12  # motions
_ASIDE = 30.0  # motions by which a point may lie beside the line
_BLUNT = 10.0  # times this is by how much distances and normals may differ


def along_lines(model: Model, evaluations: Mapping[int, Evaluation], backend: str, dtype: str) -> set[int]:
    """Those of the states in which each contact lies where MuJoCo's does, or on the line between two places that
    MuJoCo's takes with the same depth and normal if every dof and geom moves by about the rounding of poses.

    Args:
        model: the model.
        evaluations: states by their numbers, and MuJoCo's results.
        backend: "cuda", "host", "jax" or "auto".
        dtype: "float32" or "float64".
    """
    if not evaluations:
        return set()
    found, motion = set(), _MOTION[dtype]
    ours = contacts(model, list(evaluations.values()), backend, dtype)
    for (i, evaluation), listed in zip(evaluations.items(), ours, strict=True):
        geoms, fields = evaluation.fields["contact_geom"], evaluation.fields
        if listed.geoms != list(map(tuple, geoms.tolist())):
            continue
        theirs = marks(*(fields[f"contact_{name}"] for name in ("dist", "pos", "frame")))
        theirs = theirs[contact_order(geoms, listed.marks, theirs)]
        moved = _moved(model.mj, evaluation, geoms, listed.marks, motion)
        places = np.stack((theirs, *moved), axis=1)
        if all(_is_between(own, of, _ASIDE * motion) for own, of in zip(listed.marks, places, strict=True)):
            found.add(i)
    return found


def _moved(
    mj: mujoco.MjModel, evaluation: Evaluation, geoms: np.ndarray, own: np.ndarray, motion: float
) -> list[np.ndarray]:
    """Marks of MuJoCo's contacts after motions, in the engine's order; of motions that keep all contacts."""
    found, rng = [], np.random.default_rng(0)
    data = mujoco.MjData(mj)
    for direction in rng.choice((-1.0, 1.0), size=(_TURNS, mj.nv)):
        near = with_moved_geoms(mj, rng, motion)
        evaluation.state.put_into(near, data)
        mujoco.mj_integratePos(near, data.qpos, direction, motion)
        find_contacts(near, data)
        contact = data.contact
        if np.array_equal(contact.geom, geoms):
            told = marks(contact.dist, contact.pos, contact.frame)
            found.append(told[contact_order(geoms, own, told)])
    return found


def _is_between(own: np.ndarray, theirs: np.ndarray, slack: float) -> bool:
    """Whether a contact lies at one of MuJoCo's or between two of them, as deep and with the same normal."""
    alike = [m[:3] for m in theirs if np.abs(m[3:] - own[3:]).max() <= _BLUNT * slack]
    return any(_distance(own[:3], a, b) <= slack for a, b in itertools.combinations_with_replacement(alike, 2))


def _distance(point: np.ndarray, begin: np.ndarray, end: np.ndarray) -> float:
    """Distance of a point (3,) from a segment [m]."""
    along, length2 = end - begin, float((end - begin) @ (end - begin))
    share = float(np.clip((point - begin) @ along / length2, 0.0, 1.0)) if length2 > 0 else 0.0
    return float(np.linalg.norm(point - begin - share * along))
