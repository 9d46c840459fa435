"""Table fields of the broadphase, for models whose pairs of geoms are found in every step.

A table of candidate pairs grows with the square of the number of geoms. Models with many geoms have none. Their table
holds the parameters of each geom that MuJoCo's filters and mixing rules need, and kernels apply these rules to the
pairs whose bounding boxes overlap. What the engine must know at load about all pairs, such as which types of geoms can
meet, comes from a census.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import mujoco
import numpy as np

from simengine.model.pairs import MAX_CODE, Candidate, explicit_pairs, in_order, kind_of_types, pair_flags
from simengine.model.rows import last_dofs

MOST_LISTED = 2000
"""Most candidate pairs for which a table costs less than finding the pairs in every step."""

_BLOCK = 256  # geoms whose pairs are examined together
_EXAMPLES = 32
_LARGE_SHARE = 64  # one geom in this many may be larger than a cell of the grid


class Census(NamedTuple):
    """The pairs of a model, by kind of geom; geoms of one kind have the same type, mesh, dimension and priority.

    Attributes:
        number: candidate pairs.
        examples: some pairs for every two kinds that can meet, and all explicit pairs.
        numbers: how many pairs each example represents.
        geoms: the geoms that can meet another.
    """

    number: int
    examples: list[Candidate]
    numbers: list[int]
    geoms: set[int]


def _kinds(mj: mujoco.MjModel) -> np.ndarray:
    mesh = np.where(mj.geom_type == int(mujoco.mjtGeom.mjGEOM_MESH), mj.geom_dataid, -1)
    reaching = mj.geom_margin + mj.geom_gap > 0
    rows = np.column_stack([mj.geom_type, mesh, mj.geom_condim, mj.geom_priority, reaching])
    return np.asarray(np.unique(rows, axis=0, return_inverse=True)[1].ravel(), dtype=np.int64)


def _allowed(mj: mujoco.MjModel) -> Iterator[tuple[int, np.ndarray]]:
    """For each block of geoms: its first geom, and the higher geoms with which each may collide, (block, ngeom)."""
    contacts, filter_parent, _ = pair_flags(mj)
    if not contacts:
        return
    body, numbers = mj.geom_bodyid, np.arange(mj.ngeom)
    weld = mj.body_weldid[body]
    moves = mj.body_dofnum[weld] > 0
    parent = np.where(weld > 0, mj.body_weldid[mj.body_parentid[weld]], -1)
    parent = np.where((parent > 0) & filter_parent, parent, -1)
    contype, conaffinity = mj.geom_contype, mj.geom_conaffinity
    excluded: dict[int, list[int]] = {}
    for signature in mj.exclude_signature.tolist():
        excluded.setdefault(signature >> 16, []).append(signature & 0xFFFF)
    for start in range(0, mj.ngeom, _BLOCK):
        own = slice(start, min(start + _BLOCK, mj.ngeom))
        mask = numbers[own, None] < numbers
        mask &= weld[own, None] != weld
        mask &= moves[own, None] | moves
        mask &= (parent[own, None] != weld) & (weld[own, None] != parent)
        mask &= (contype[own, None] & conaffinity | conaffinity[own, None] & contype) != 0
        for row in np.flatnonzero(np.isin(body[own], list(excluded))).tolist():
            mask[row, np.isin(body, excluded[int(body[start + row])])] = False
        yield start, mask


def take_census(mj: mujoco.MjModel) -> Census:
    """Examine all pairs of geoms; the time grows with their number, the memory does not."""
    kinds = _kinds(mj)
    count = int(kinds.max(initial=0)) + 1
    numbers = np.zeros(count * count, dtype=np.int64)
    found: dict[int, list[Candidate]] = {}
    meets = np.zeros(mj.ngeom, dtype=bool)
    for start, mask in _allowed(mj):
        meets[start : start + len(mask)] |= mask.any(axis=1)
        meets |= mask.any(axis=0)
        first, second = np.nonzero(mask)
        one, other = kinds[first + start], kinds[second]
        codes = np.minimum(one, other) * count + np.maximum(one, other)
        here = np.bincount(codes, minlength=count * count)
        numbers += here
        for code in np.flatnonzero(here).tolist():
            if len(known := found.setdefault(code, [])) < _EXAMPLES:
                place = int(np.argmax(codes == code))
                known.append(in_order(mj, int(first[place]) + start, int(second[place])))
    examples = [pair for code in sorted(found) for pair in found[code]]
    stand_for = [int(numbers[code]) if i == 0 else 0 for code in sorted(found) for i in range(len(found[code]))]
    explicit = explicit_pairs(mj)
    meets[[geom for pair in explicit for geom in pair[:2]]] = True
    return Census(
        int(numbers.sum()) + len(explicit),
        examples + explicit,
        stand_for + [1] * len(explicit),
        set(np.flatnonzero(meets).tolist()),
    )


def grid_of(mj: mujoco.MjModel) -> tuple[float, tuple[int, int], int]:
    """Width of the broadphase's cells [m], steps between neighbours along y and z, and the number of cells.

    The number of a cell is x + y * step[0] + z * step[1], modulo the number of cells, which is a power of two. The
    steps are chosen so that the cells around any cell have different numbers.
    """
    cells = 1 << max(7, int(2 * mj.ngeom - 1).bit_length())
    small = np.sort(2 * (mj.geom_rbound + np.maximum(0, mj.geom_margin + mj.geom_gap))[mj.geom_rbound > 0])
    allowed = max(8, len(small) // _LARGE_SHARE)
    width = float(small[max(0, len(small) - 1 - allowed)]) if len(small) else 1.0
    root = round(cells ** (1 / 3))
    offsets = np.arange(-2, 3)
    for along_y in range(root | 1, cells, 2):
        along_z = (along_y * along_y) | 1
        sums = offsets + along_y * offsets[:, None] + along_z * offsets[:, None, None]
        if len(np.unique(sums % cells)) == offsets.size**3:
            return 1.1 * max(width, 1e-6), (along_y, along_z), cells
    raise AssertionError(f"no steps for a grid of {cells} cells")


def collider_table(mj: mujoco.MjModel, wanted: bool) -> tuple[dict[str, np.ndarray], dict[str, int]]:
    """Table fields and sizes of colliders; all empty unless `wanted`."""
    values: dict[str, Any] = {"kind": np.zeros((8, 8, 2)), "grid_cell": 1.0, "grid_step": np.zeros(2)}
    number = mj.ngeom if wanted else 0
    values["collider"], values["collider_prm"] = np.zeros((0, 8)), np.zeros((0, 10))
    values["geom_friction"] = mj.geom_friction[:number]
    explicit = explicit_pairs(mj) if wanted else []
    cells = 0
    if wanted:
        values |= _colliders(mj)
        values["grid_cell"], values["grid_step"], cells = grid_of(mj)
        for first in range(8):
            for second in range(first, 8):
                values["kind"][first, second] = kind_of_types(mj, (first, second))
    numbers = [pair.pair for pair in explicit]
    geoms = np.array([pair[:2] for pair in explicit], dtype=np.int32).reshape(-1, 2)
    values["explicit_pair"] = np.column_stack([geoms, mj.pair_dim[numbers]])
    parts = ("friction", "solref", "solreffriction", "solimp", "margin", "gap")
    values["explicit_prm"] = np.column_stack([getattr(mj, f"pair_{part}")[numbers] for part in parts]).reshape(-1, 16)
    values["explicit_prm"][:, :5] = np.maximum(values["explicit_prm"][:, :5], float(mujoco.mjMINMU))
    sides = np.sort(geoms, axis=1)
    values["explicit_geoms"] = sides[np.lexsort((sides[:, 1], sides[:, 0]))]
    values["exclude_signature"] = np.unique(mj.exclude_signature) if wanted else np.zeros(0)
    sizes = {"ncollider": number, "nexplicit": len(explicit), "ngrid": cells}
    sizes["nexcluded"] = len(values["exclude_signature"])
    arrays = {n: np.array(v, np.float64 if n in _REAL else np.int32) for n, v in values.items()}
    return arrays, sizes


_REAL = frozenset({"collider_prm", "geom_friction", "explicit_prm", "grid_cell"})


def _colliders(mj: mujoco.MjModel) -> dict[str, np.ndarray]:
    contacts, filter_parent, _ = pair_flags(mj)
    weld = mj.body_weldid[mj.geom_bodyid]
    parent = np.where(weld > 0, mj.body_weldid[mj.body_parentid[weld]], -1)
    parent = np.where((parent > 0) & filter_parent, parent, -1)
    moves, last = mj.body_dofnum[weld] > 0, last_dofs(mj)[mj.geom_bodyid]
    contype, conaffinity = mj.geom_contype * contacts, mj.geom_conaffinity * contacts
    filters = (contype, conaffinity, weld, parent, moves, mj.geom_condim, mj.geom_priority, last)
    mixed = (mj.geom_margin, mj.geom_gap, mj.geom_solmix, mj.geom_solref, mj.geom_solimp)
    return {"collider": np.column_stack(filters), "collider_prm": np.column_stack(mixed)}


def most_slots(census: Census, mj: mujoco.MjModel) -> np.ndarray:
    """Most contacts of all pairs that each example represents, together."""
    types = [(int(mj.geom_type[pair.geom1]), int(mj.geom_type[pair.geom2])) for pair in census.examples]
    slots = [kind_of_types(mj, pair)[1] for pair in types]
    return np.array(slots, dtype=np.int64) * np.array(census.numbers, dtype=np.int64)


assert MAX_CODE < 32, "the types of a world's pairs are the bits of an integer"
