"""Blocks: ranges of dofs that only constraint rows couple, so that the joint-space inertia is block-diagonal.

A block is a kinematic tree, or several trees that a tendon couples. So a constraint row touches at most two blocks:
those of the bodies in contact, or of an equality constraint.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

import mujoco
import numpy as np

from simengine.model.tendons import AROUND

_EQ = mujoco.mjtEq
_PGS = mujoco.mjtSolver.mjSOL_PGS
_NO_ISLANDS = int(mujoco.mjtDisableBit.mjDSBL_ISLAND)
FEWEST_DOFS = 65
"""Fewest dofs of a world that is solved island by island; in smaller ones, this costs more than it saves."""

FEWEST_BEYOND_A_BLOCK = 80
"""On a CPU calls are cheap, and smaller worlds are solved island by island: those whose dofs, times the blocks beyond
the first, are at least so many. In others, vectors make the dense problem cheaper than what islands add to it."""

MOST_ALONG_BRANCHES = 256
"""Most dofs of a world whose matrices have entries along the branches of trees only: a byte names a dof."""

MOST_DENSE_DOFS = 64
"""Most dofs of an island that is solved with dense matrices; for larger ones, sparse matrices cost less."""


FEWEST_BODIES, DOFS_OF_A_BODY = 9, 6
"""Fewest free bodies of a world of nothing else that a GPU solves island by island, and the dofs of each. Eight are one
problem in less time, where most of them touch."""

ON_A_CPU, ON_A_GPU = "cpu", "gpu"


def worth_blocks(mj: mujoco.MjModel, where: str = "") -> bool:
    """Whether a model has enough dofs, in enough trees, to be solved island by island, if need be ON_A_CPU or ON_A_GPU.

    PGS does not converge, so its result depends on which rows are solved together. MuJoCo's islands consist of trees,
    or are disabled, so for PGS each block must be one tree and islands must be enabled. The noslip solver sweeps over
    all rows of a world, so it excludes islands.
    """
    if mj.opt.noslip_iterations:
        return False
    blocks = len(_boundaries(mj)) - 1
    as_mujoco = blocks == mj.ntree and not mj.opt.disableflags & _NO_ISLANDS
    enough = mj.nv >= FEWEST_DOFS
    if where == ON_A_CPU:
        enough = enough or mj.nv * (blocks - 1) >= FEWEST_BEYOND_A_BLOCK
    if where == ON_A_GPU:
        free = bool((np.diff(_boundaries(mj)) == DOFS_OF_A_BODY).all())
        enough = enough or (blocks >= FEWEST_BODIES and free and mj.opt.solver != _PGS)
    return bool(enough and blocks > 1 and (mj.opt.solver != _PGS or as_mujoco))


def block_table(mj: mujoco.MjModel, split: bool) -> tuple[dict[str, np.ndarray], dict[str, int]]:
    """Table fields and sizes of blocks; unless `split`, there is one block of all dofs.

    nM is the number of words of the inertia, nJ that of a row of the Jacobian over the dofs of two blocks, and nwidest
    the number of dofs of the largest block.
    """
    bounds = _boundaries(mj) if split else np.array([0, mj.nv])
    width = np.diff(bounds)
    dof_block = np.repeat(np.arange(len(width)), width)
    body_block = np.full(mj.nbody, -1)
    for body in range(1, mj.nbody):
        has_dofs = mj.body_dofnum[body] > 0
        body_block[body] = dof_block[mj.body_dofadr[body]] if has_dofs else body_block[mj.body_parentid[body]]
    paths = [_tendon_dofs(mj, tendon) for tendon in range(mj.ntendon)]
    arrays = {
        "tendon_dof": np.array([dofs.min() if len(dofs) else 0 for dofs in paths], dtype=int),
        "block_dofadr": bounds,
        "block_adr": np.concatenate(([0], np.cumsum(width**2))),
        "dof_block": dof_block,
        "body_block": body_block,
    }
    sizes = {
        "nblock": len(width),
        "nM": int((width**2).sum()),
        "nJ": (int(np.sort(width)[-2:].sum()) + 3) & ~3,
        "nwidest": int(width.max(initial=0)),
    }
    return {name: values.astype(np.int32) for name, values in arrays.items()}, sizes


def branch_entries(parent: Sequence[int]) -> int:
    """Words of a matrix that has an entry for each dof on the branch from a dof to its root, by rows.

    Each row takes a multiple of four words.

    Args:
        parent: of each dof, the next one on its branch; -1 for a root.
    """
    length = np.zeros(len(parent) + 1, dtype=int)  # the last stands for the parent -1
    for dof, up in enumerate(parent):
        length[dof] = length[up] + 1
    return int(((length[:-1] + 3) & ~3).sum())


def branch_words(nv: int, entries: int, dofs: int) -> int:
    """Words of BranchRows (branch_rows.cuh) for nv dofs, a number of entries, and lists of dofs of so many bytes."""
    return entries + 5 * ((nv + 3) & ~3) + ((-(-dofs // 4) + 3) & ~3)


def branch_sizes(mj: mujoco.MjModel, joined: Sequence[int]) -> dict[str, int]:
    """The sizes of matrices along the branches of the trees, and along those that rows join, given their parents."""
    tree = mj.dof_parentid.tolist()
    entries = {"nbranch": branch_entries(tree), "njoined": branch_entries(joined)}
    dofs = {"nbranchdof": branch_dofs(tree, tree), "njoineddof": branch_dofs(joined, tree)}
    return entries | dofs | {"nbranchword": branch_words(mj.nv, entries["nbranch"], dofs["nbranchdof"])}


def branch_dofs(parent: Sequence[int], tree: Sequence[int]) -> int:
    """Bytes for the dofs on the branches that end in a leaf of the trees, each a multiple of four.

    Args:
        parent: of each dof, the next one on its branch; -1 for a root.
        tree: the same without couplings. These make no dof a leaf that is none.
    """
    length = np.zeros(len(parent) + 1, dtype=int)  # the last stands for the parent -1
    for dof, up in enumerate(parent):
        length[dof] = length[up] + 1
    leaf = np.ones(len(parent) + 1, dtype=bool)
    leaf[list(tree)] = False
    return int(((length[:-1] + 3) & ~3)[leaf[:-1]].sum())


def joined_branches(mj: mujoco.MjModel, arrays: Mapping[str, np.ndarray]) -> list[int]:
    """The parent of each dof if all constraint rows that there can be couple their dofs at once.

    Rows of any one state join no others: the dofs on a branch are those from which higher ones lead to its end, so
    fewer couplings never make a branch longer. Of more dofs than matrices along branches can have, all are on one.

    Args:
        mj: the model.
        arrays: the arrays of the table, with all pairs of geoms that may touch.
    """
    one = list(range(-1, mj.nv - 1))
    if mj.nv > MOST_ALONG_BRANCHES:
        return one
    parent = mj.dof_parentid.tolist()
    ends = [arrays["body_lastdof"][mj.geom_bodyid[arrays[name]]] for name in ("cand_geom1", "cand_geom2")]
    for pair in sorted(set(zip(*(end.tolist() for end in ends), strict=True))):
        _join(parent, pair)
        if parent == one:
            return one
    entries, start = arrays["ten_J_entry"][:, 1], arrays["ten_J_rowadr"]
    along = [entries[start[t] : start[t + 1]].tolist() for t in range(mj.ntendon)]
    for code, (first, second) in zip(mj.eq_type.tolist(), arrays["eq_obj"].tolist(), strict=True):
        kind = _EQ(code)
        if kind in (_EQ.mjEQ_CONNECT, _EQ.mjEQ_WELD):
            _join(parent, arrays["body_lastdof"][[first, second]].tolist())
        elif kind == _EQ.mjEQ_TENDON:
            _join(parent, [*along[first], *(along[second] if second >= 0 else [])])
        elif second >= 0:
            _join(parent, mj.jnt_dofadr[[first, second]].tolist())
    for tendon, dofs in enumerate(along):
        if mj.tendon_limited[tendon] or mj.nv + tendon in arrays["friction_id"]:
            _join(parent, dofs)
    return parent


def _join(parent: list[int], dofs: Iterable[int]) -> None:
    """Make one branch of those of the dofs, of which the higher is nearer to its end; -1 has none."""
    ends = sorted({dof for dof in dofs if dof >= 0}, reverse=True)
    for a, b in pairwise(ends):
        while a != b and b >= 0:
            if parent[a] < b:
                parent[a], a, b = b, b, parent[a]
            else:
                a = parent[a]


def _boundaries(mj: mujoco.MjModel) -> np.ndarray:
    """First dof of each block, then nv; trees that a tendon couples are one block."""
    starts = np.flatnonzero(np.diff(mj.dof_treeid, prepend=-1))
    joined = np.zeros(mj.nv + 1, dtype=bool)
    for tendon in range(mj.ntendon):
        dofs = _tendon_dofs(mj, tendon)
        if len(dofs):
            joined[dofs.min() + 1 : dofs.max() + 1] = True
    return np.append(starts[~joined[starts]], mj.nv)


def _tendon_dofs(mj: mujoco.MjModel, tendon: int) -> np.ndarray:
    """Dofs on which the length of a tendon may depend."""
    wraps = range(mj.tendon_adr[tendon], mj.tendon_adr[tendon] + mj.tendon_num[tendon])
    kinds, dofs = mujoco.mjtWrap, [np.zeros(0, dtype=int)]
    for k in wraps:
        kind, target = mj.wrap_type[k], mj.wrap_objid[k]
        if kind == kinds.mjWRAP_JOINT:
            dofs.append(np.atleast_1d(mj.jnt_dofadr[target]))
        elif kind == kinds.mjWRAP_SITE:
            dofs.append(_tree_dofs(mj, int(mj.site_bodyid[target])))
        elif int(kind) in AROUND:
            dofs.append(_tree_dofs(mj, int(mj.geom_bodyid[target])))
    return np.concatenate(dofs)


def _tree_dofs(mj: mujoco.MjModel, body: int) -> np.ndarray:
    """Dofs of the tree that a body belongs to."""
    return np.flatnonzero(mj.dof_treeid == mj.body_treeid[body]) if mj.body_treeid[body] >= 0 else np.zeros(0, int)
