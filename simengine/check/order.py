"""The order of contacts: MuJoCo's, but for those of one geom pair, whose order rounding may decide."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


def contact_order(geoms: np.ndarray, pos: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Which of the other engine's contacts each of ours is.

    Args:
        geoms: (n, 2) geom pairs, the same in both engines, contacts of one pair together.
        pos: (n, 3) positions [m].
        other: (n, 3) the other engine's.

    Returns:
        (n,) numbers of the other engine's contacts: among those of the same pair, the nearest that is left.
    """
    order = np.arange(len(geoms))
    ends = np.flatnonzero((np.diff(geoms, axis=0) != 0).any(axis=1)) + 1
    for run in np.split(order.copy(), ends):
        left = list(run)
        for i in run if len(run) > 1 else ():
            nearest = min(left, key=lambda j: float(np.abs(pos[i] - other[j]).max()))
            left.remove(nearest)
            order[i] = nearest
    return order


class Rows(NamedTuple):
    """Attributes:
    order: (nefc,) which of the other engine's rows each of ours is.
    id: (nefc,) the other engine's row ids in our order, contacts by our numbers.
    """

    order: np.ndarray
    id: np.ndarray


def row_order(order: np.ndarray, address: np.ndarray, ids: np.ndarray) -> Rows:
    """Rows in our order, given that of the contacts.

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
