"""Copies between arrays of a GPU, many by one launch: a copy by itself costs the host some five microseconds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

FEW = 4  # copies that are made one by one, since a table of them costs as much
_THREADS = 128
_WORDS = 8  # of a thread, up to
_MOST = 64  # blocks of a copy
_SOURCE = r"""
// Copies row `step` of each entry of a table: its target, the first of its rows, and the words of a row.
extern "C" __global__ void copy_rows(const long long* table, int step) {
    const long long* own = table + 3 * blockIdx.x;
    const long long words = own[2];
    int* to = (int*)own[0];
    const int* from = (const int*)own[1] + step * words;
    const long long first = blockIdx.y * blockDim.x + threadIdx.x, stride = gridDim.y * blockDim.x;
    for (long long i = first; i < words; i += stride) to[i] = from[i];
}
"""


@cache
def _kernel(cupy: Any, gpu: int) -> Any:
    return cupy.RawKernel(_SOURCE, "copy_rows")


def row_copier(cupy: Any, pairs: Sequence[tuple[Any, Any]]) -> Callable[[int], None]:
    """Return a function `copy(k)` that copies `rows[k]` to the beginning of `array`, for all pairs (array, rows).

    Elements have four or eight bytes. The copies are made on the current stream by one launch. Their memory must live
    until then.
    """
    kept = [(array, cupy.ascontiguousarray(rows, dtype=array.dtype)) for array, rows in pairs]
    entries = [(array.data.ptr, rows.data.ptr, rows.nbytes // len(rows) // 4) for array, rows in kept]
    table, kernel = cupy.asarray(np.array(entries, np.int64)), _kernel(cupy, cupy.cuda.Device().id)
    most = max(words for *_, words in entries)
    grid = len(entries), min(_MOST, max(1, -(-most // (_THREADS * _WORDS))))

    def copy(k: int, kept: Any = kept) -> None:  # the default value keeps the arrays alive
        kernel(grid, (_THREADS,), (table, np.int32(k)))

    return copy
