"""Clusters of geoms, for a GPU: pairs of geoms are tested only where the boxes round two clusters meet.

A cluster holds geoms near each other that never move relative to each other: those of one body and of what is welded
to it, or those that stand still. Candidate pairs are put together by the two clusters that they are of. The box of a
cluster that stands still is found once, here, so that such a geom costs a step nothing while no body is near.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import mujoco
import numpy as np

MOST_IN_CLUSTER = 16
"""Geoms of a cluster. Fewer make more boxes to look at, more make larger ones, which more often meet."""

FEWEST_CULLED = 512
"""Candidate pairs from which on clusters may pay. They take a launch of their own, of some 4 us. Half of the tests, of
30 ps each on an H200, are as long with 512 pairs in 512 worlds."""

LEAST_SAVED = 0.5
"""Part of the tests that clusters must save where the model is at rest: bodies that move may come near more."""

MOST_WORDS = 4096
"""Words of shared memory that a world's clusters and candidate pairs may take: 13 worlds fit on a multiprocessor."""

_ROUNDING = 1e-5
"""Room that a box leaves round what stands still, relative to the model's size. The positions of kernels are rounded to
float32, some hundred times less than this."""

_FAR = 1e30  # beyond every position; float32 holds it

_PLANE = int(mujoco.mjtGeom.mjGEOM_PLANE)


class Stills(NamedTuple):
    """The geoms of clusters that stand still.

    Attributes:
        geoms: geoms of each cluster, the last repeated, (nstill, most).
        pos: their positions in the world, (nstill, most, 3).
        flat: whether a cluster is of planes, which have no bounds, (nstill, 1).
        size: the largest position, or radius, of what stands still [m].
    """

    geoms: np.ndarray
    pos: np.ndarray
    flat: np.ndarray
    size: float


def roots(mj: mujoco.MjModel) -> np.ndarray:
    """The body, for each body, with which it moves as one, (nbody,); 0 if it stands still. Mocap bodies move."""
    root = np.arange(mj.nbody)
    for body in range(1, mj.nbody):
        if not mj.body_jntnum[body] and mj.body_mocapid[body] < 0:
            root[body] = root[mj.body_parentid[body]]
    return root


def positions(mj: mujoco.MjModel) -> np.ndarray:
    """Positions of the geoms in the world at qpos0, (ngeom, 3)."""
    data = mujoco.MjData(mj)
    mujoco.mj_kinematics(mj, data)
    return np.array(data.geom_xpos)


def stills(mj: mujoco.MjModel, adr: np.ndarray, geom: np.ndarray, number: int) -> Stills:
    """The geoms of the first `number` clusters, which stand still; `adr` and `geom` are fields of the model table."""
    most = int(np.diff(adr[: number + 1]).max(initial=1))
    places = np.minimum(adr[:number, None] + np.arange(most), adr[1 : number + 1, None] - 1)
    geoms, pos = geom[places], positions(mj)
    still = roots(mj) == 0
    of_still = still[mj.geom_bodyid]
    lengths = (pos[of_still], mj.geom_pos[of_still], mj.geom_rbound[of_still], mj.body_pos[still])
    size = max(float(np.abs(values).max(initial=0.0)) for values in lengths)
    return Stills(geoms, pos[geoms], mj.geom_type[geoms[:, :1]] == _PLANE, size)


def still_boxes(xp: Any, of: Stills, radius: Any) -> Any:
    """Boxes round clusters that stand still: least and largest coordinates, (..., nstill, 6).

    Args:
        xp: NumPy, CuPy or jax.numpy.
        of: the clusters.
        radius: radii of the bounding spheres of all geoms, (..., ngeom).
    """
    reach = radius[..., of.geoms, None] * (1 + _ROUNDING) + _ROUNDING * of.size
    pos, flat = xp.asarray(of.pos, radius.dtype), xp.asarray(of.flat)
    low, high = (pos - reach).min(axis=-2), (pos + reach).max(axis=-2)
    return xp.concatenate([xp.where(flat, -_FAR, low), xp.where(flat, _FAR, high)], axis=-1)


def cluster_table(mj: mujoco.MjModel, pairs: Sequence[tuple[int, int, int]], reach: np.ndarray) -> dict[str, Any]:
    """The `cluster_*` and `meeting_*` arrays of the model table; without clusters where they save too little.

    Args:
        mj: the compiled model.
        pairs: its candidate pairs.
        reach: distance below which contacts of each are listed [m], (candidates,).
    """
    table = _clustered(mj, np.array(pairs).reshape(-1, 3)[:, :2], reach) if len(pairs) >= FEWEST_CULLED else {}
    if table and operations(mj, table) <= (1 - LEAST_SAVED) * len(pairs) and _words(table) <= MOST_WORDS:
        return table
    nothing = np.zeros(0, dtype=int)
    ends = dict.fromkeys(("cluster_adr", "meeting_adr"), np.zeros(1, dtype=int))
    rest = dict.fromkeys(("cluster_geom", "meeting_cand", "meeting_reach"), nothing)
    return ends | rest | {"cluster_box": np.zeros((0, 6)), "meeting": np.zeros((0, 2), dtype=int)}


def _clustered(mj: mujoco.MjModel, geoms: np.ndarray, reach: np.ndarray) -> dict[str, Any]:
    """The arrays of clusters of the geoms of candidate pairs, (candidates, 2)."""
    clusters, still = _clusters(mj, np.unique(geoms))
    adr = np.cumsum([0, *map(len, clusters)])
    geom = np.concatenate(clusters)
    of_geom = np.zeros(mj.ngeom, dtype=int)
    of_geom[geom] = np.repeat(np.arange(len(clusters)), np.diff(adr))
    both = np.sort(of_geom[geoms], axis=1)
    meeting, of_pair = np.unique(both, axis=0, return_inverse=True)
    of_pair = of_pair.ravel()
    most = np.zeros(len(meeting))
    np.maximum.at(most, of_pair, np.abs(reach))
    return {
        "cluster_adr": adr,
        "cluster_geom": geom,
        "cluster_box": still_boxes(np, stills(mj, adr, geom, still), mj.geom_rbound),
        "meeting": meeting,
        "meeting_adr": np.cumsum([0, *np.bincount(of_pair, minlength=len(meeting))]),
        "meeting_cand": np.argsort(of_pair, kind="stable"),
        "meeting_reach": most,
    }


def _clusters(mj: mujoco.MjModel, geoms: np.ndarray) -> tuple[list[np.ndarray], int]:
    """Clusters of geoms, first those that stand still, and the number of these. Planes are apart, which have no box."""
    root = roots(mj)[mj.geom_bodyid[geoms]]
    flat = mj.geom_type[geoms] == _PLANE
    places = np.column_stack([positions(mj), mj.geom_rbound])
    clusters: list[np.ndarray] = []
    still = 0
    for body in np.unique(root):
        for which in (flat, ~flat):
            clusters += _near_each_other(places, geoms[(root == body) & which])
        still = len(clusters) if body == 0 else still
    return clusters, still


def _near_each_other(places: np.ndarray, geoms: np.ndarray) -> list[np.ndarray]:
    """Geoms in clusters, halved where they extend most: along an axis, or from small to large, which would spoil the
    boxes of small ones. `places` has the position and radius of each geom, (ngeom, 4)."""
    if len(geoms) <= MOST_IN_CLUSTER:
        return [geoms] if len(geoms) else []
    own = places[geoms]
    order = np.argsort(own[:, np.argmax(np.ptp(own, axis=0))], kind="stable")
    half = MOST_IN_CLUSTER * ((len(geoms) + MOST_IN_CLUSTER - 1) // MOST_IN_CLUSTER // 2)
    return [c for part in (order[:half], order[half:]) for c in _near_each_other(places, np.sort(geoms[part]))]


def operations(mj: mujoco.MjModel, table: dict[str, Any]) -> int:
    """Tests of boxes, of spheres, and of words of bits, that a world at qpos0 takes; every geom that moves counts, too.

    Without clusters it takes a test for each candidate pair.
    """
    adr, geom, pos = table["cluster_adr"], table["cluster_geom"], positions(mj)
    moving = len(geom) - adr[len(table["cluster_box"])]
    radius = np.where(mj.geom_type == _PLANE, _FAR, mj.geom_rbound)[geom, None]
    low = np.minimum.reduceat(pos[geom] - radius, adr[:-1])
    high = np.maximum.reduceat(pos[geom] + radius, adr[:-1])
    one, other = table["meeting"].T
    most = table["meeting_reach"][:, None]
    meets = ((low[one] <= high[other] + most) & (low[other] <= high[one] + most)).all(axis=1)
    tested = np.diff(table["meeting_adr"])[meets].sum()
    return int(moving + len(meets) + tested + bit_words(len(table["meeting_cand"])))


def bit_words(pairs: int) -> int:
    """Words with a bit for each candidate pair."""
    return -(-pairs // 32)


def _words(table: dict[str, Any]) -> int:
    moving = len(table["cluster_adr"]) - 1 - len(table["cluster_box"])
    return 6 * moving + bit_words(len(table["meeting_cand"]))


def cluster_sizes(table: dict[str, Any]) -> dict[str, int]:
    """The sizes of the model that the arrays of clusters have."""
    numbers = {"ncluster": len(table["cluster_adr"]) - 1, "nclustered": len(table["cluster_geom"])}
    numbers |= {"nstill": len(table["cluster_box"]), "nmeeting": len(table["meeting"])}
    return numbers | {"nculled": len(table["meeting_cand"])}
