"""The orders in which projected Gauss-Seidel visits the rows of an island in its first sweeps.

They are random, but depend on nothing but the number of rows and that of the sweep: `shuffle` in
simengine/physics/math/random.cuh, again and again. A GPU reads them, because drawing an order takes longer there than
visiting ten rows.
"""

from __future__ import annotations

from functools import cache

import mujoco
import numpy as np

MOST_ROWS = 96
"""Orders of more rows are not in the table."""

MOST_SWEEPS = 100
"""Later sweeps are not in the table."""

_FACTOR, _BITS = 6364136223846793005, 2**64 - 1


def sweep_table(mj: mujoco.MjModel, rows: int) -> np.ndarray:
    """The field `sweep_order`: empty but for the solver PGS.

    A row of it has the order of a sweep for each number n of constraint rows: n bytes from byte n (n - 1) / 2 on.

    Args:
        mj: the model.
        rows: the most constraint rows of a state.
    """
    if mj.opt.solver != mujoco.mjtSolver.mjSOL_PGS:
        return np.zeros((0, 0), dtype=np.int32)
    return _orders(min(rows, MOST_ROWS), min(mj.opt.iterations, MOST_SWEEPS))


@cache
def _orders(rows: int, sweeps: int) -> np.ndarray:
    drawn = _random_numbers(sweeps * max(rows - 1, 0))
    table = np.zeros((sweeps, -(-rows * (rows + 1) // 8) * 4), dtype=np.uint8)
    for n in range(1, rows + 1):
        numbers = drawn[: sweeps * (n - 1)].reshape(sweeps, n - 1) % np.arange(n, 1, -1, dtype=np.uint64)
        order = list(range(n))
        for sweep, others in enumerate(numbers.tolist()):
            for place, other in zip(range(n - 1, 0, -1), others, strict=True):
                order[place], order[other] = order[other], order[place]
            table[sweep, n * (n - 1) // 2 : n * (n + 1) // 2] = order
    return table.view(np.int32)


def _random_numbers(count: int) -> np.ndarray:
    """The first numbers of the generator PCG XSH-RR, from state 1."""
    states, state = np.empty(count, dtype=np.uint64), 1
    for i in range(count):
        states[i] = state
        state = state * _FACTOR + 1 & _BITS
    mixed = ((states >> np.uint64(18)) ^ states) >> np.uint64(27) & np.uint64(0xFFFFFFFF)
    turn = states >> np.uint64(59)
    return (mixed >> turn | mixed << (np.uint64(32) - turn & np.uint64(31))) & np.uint64(0xFFFFFFFF)
