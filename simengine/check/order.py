"""Matching of contacts: both engines use MuJoCo's order, but rounding may decide that within one geom pair."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

_COPIES = 1e-10  # difference up to which contacts are copies, or of neighbouring prisms with one corner
_SEARCHED = 2e-5  # and up to which MuJoCo's own copies may differ, which it finds by searches with other margins


def marks(dist: np.ndarray, pos: np.ndarray, frame: np.ndarray) -> np.ndarray:
    """What tells the contacts of a pair apart, (n, 7): position [m], distance [m] and normal.

    Args:
        dist: (n,) distances [m].
        pos: (n, 3) positions [m].
        frame: (n, 9) or (n, 3, 3) contact frames, the normal first.
    """
    return np.column_stack((pos, dist, np.reshape(frame, (len(dist), 9))[:, :3]))


def contact_order(geoms: np.ndarray, own: np.ndarray, other: np.ndarray) -> np.ndarray:
    """For each of our contacts, the other engine's contact that it is.

    Args:
        geoms: (n, 2) geom pairs, the same in both engines; contacts of one pair are consecutive.
        own: (n, k) what tells our contacts apart, as `marks` gives it.
        other: (n, k) the other engine's.

    Returns:
        (n,) indices of the other engine's contacts: among those of the same pair, the nearest that is not taken yet. Of
        copies, which several explicit pairs of the same geoms have, it is the first.
    """
    order = np.arange(len(geoms))
    ends = np.flatnonzero((np.diff(geoms, axis=0) != 0).any(axis=1)) + 1
    for run in np.split(order.copy(), ends):
        left = list(run)
        for i in run if len(run) > 1 else ():
            apart = np.abs(own[i] - other[left]).max(axis=1)
            copied = np.count_nonzero(np.abs(own[i] - own[run]).max(axis=1) <= _COPIES) > 1
            slack = _SEARCHED if copied else _COPIES
            nearest = left[int((apart <= apart.min() + slack).argmax())]
            left.remove(nearest)
            order[i] = nearest
    return order


class Rows(NamedTuple):
    """Attributes:
    order: (nefc,) for each of our rows, the other engine's row that it is.
    id: (nefc,) the other engine's row ids in our order, with our indices for contacts.
    """

    order: np.ndarray
    id: np.ndarray


def row_order(order: np.ndarray, address: np.ndarray, ids: np.ndarray) -> Rows:
    """The other engine's rows in our order, given the order of the contacts.

    Args:
        order: (n,) from `contact_order`.
        address: (n,) the other engine's first row of each contact, -1 without rows.
        ids: (nefc,) the other engine's `efc_id`.
    """
    acting = address[address >= 0]
    first = acting.min(initial=len(ids))
    size = dict(zip(acting.tolist(), np.diff(np.append(acting, len(ids))).tolist(), strict=True))
    starts = [int(address[i]) for i in order if address[i] >= 0]
    rows = np.concatenate([np.arange(first), *(np.arange(s, s + size[s]) for s in starts)]).astype(int)
    ours = np.argsort(order)
    renumbered = ids[rows].copy()
    renumbered[first:] = ours[renumbered[first:]]
    return Rows(rows, renumbered)
