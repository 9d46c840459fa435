"""Expands matrices and constraint rows that are stored by blocks into MuJoCo's dense layout, for users to read."""

from __future__ import annotations

from typing import Any

import numpy as np

from simengine.backends.base import Backend
from simengine.model.model_table import ModelTable

STORED_BY_BLOCKS = {"qM": "qM_blocks", "qLD": "qLD_blocks"}


def dense_matrices(model: ModelTable, blocks: Any, backend: Backend) -> Any:
    """Expand blocks (n, nM) into block-diagonal matrices (n, nv, nv)."""
    width = np.diff(model.block_dofadr)
    first = np.repeat(model.block_dofadr[:-1], width**2)
    within = np.arange(model.nM) - np.repeat(model.block_adr[:-1], width**2)
    n = np.repeat(width, width**2)
    where = (first + within // n) * model.nv + first + within % n
    dense = backend.stage(np.zeros((len(blocks), model.nv * model.nv), str(blocks.dtype)))
    dense[:, backend.stage(where)] = blocks
    return dense.reshape(len(blocks), model.nv, model.nv)


def dense_rows(model: ModelTable, rows: np.ndarray, blocks: np.ndarray) -> np.ndarray:
    """Expand constraint rows into a dense Jacobian.

    Args:
        model: gives the dofs of each block.
        rows: (nefc, nJ), each row over the dofs of its two blocks.
        blocks: (nefc, 2), the two blocks of each row; the second is -1 if there is only one.

    Returns:
        The Jacobian, (nefc, nv).
    """
    dense = np.zeros((len(rows), model.nv), rows.dtype)
    start, width = model.block_dofadr[:-1], np.diff(model.block_dofadr)
    for row, compact, (first, second) in zip(dense, rows, blocks, strict=True):
        n = width[first]
        row[start[first] : start[first] + n] = compact[:n]
        if second >= 0:
            row[start[second] : start[second] + width[second]] = compact[n : n + width[second]]
    return dense
