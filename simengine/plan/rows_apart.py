"""Kernels that make rows and solve as two: what a GPU has for many worlds.

Warps of many worlds are at different places of the code. That of rows and a solver together is more than the cache of
instructions holds.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from simengine.kernels.kernel import Kernel
from simengine.physics.solvers.solve_newton_general import SOLVE_NEWTON_GENERAL
from simengine.physics.solvers.solve_newton_unilateral import SOLVE_NEWTON_UNILATERAL
from simengine.plan import catalogue
from simengine.plan.variants import MATRIX_SIZES, along_branches, with_jacobian_in_memory, with_matrix_rows

_BLOCKS_OF_ROWS = 7  # of 128 threads on a multiprocessor; with eight, a thread's registers would spill


@cache
def rows_apart(finish: Kernel) -> tuple[Kernel, Kernel]:
    """A kernel of `catalogue.finish`, or a variant, as two: one makes the rows, and one has all stages behind them.

    Rows in scratch of the first are stored, and the second reads what it needs of them into its own scratch.
    """
    rows, *behind = finish.stages
    read = {name for stage in behind for name in stage.reads}
    return (
        replace(
            finish,
            name=f"rows_of_{finish.name}",
            stages=(rows,),
            min_blocks_per_multiprocessor=max(finish.min_blocks_per_multiprocessor, _BLOCKS_OF_ROWS),
        ),
        replace(
            finish,
            name=f"{finish.name}_of_rows",
            stages=tuple(behind),
            preload=frozenset(name for name in finish.in_scratch if name in rows.writes and name in read),
        ),
    )


def with_rows_apart() -> tuple[Kernel, ...]:
    """Both kernels in every form, with matrices in registers of one size."""
    whole = catalogue.finish("", SOLVE_NEWTON_GENERAL.name, False)
    pushing = (
        catalogue.finish(integrator, SOLVE_NEWTON_UNILATERAL.name, False)
        for integrator in ("", *catalogue.FUSED_INTEGRATORS)
    )
    forms = [form for kernel in (whole, *pushing) for form in (kernel, with_jacobian_in_memory(kernel))]
    wide = [with_matrix_rows(rows_apart(form)[1], MATRIX_SIZES[0]) for form in forms]
    kernels = [kernel for form in (*forms, along_branches(whole)) for kernel in rows_apart(form)]
    return tuple(dict.fromkeys((*kernels, *wide)))
