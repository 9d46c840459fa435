"""Kernels that solve large islands, on a GPU by a whole block of threads each: forms for many worlds and for few."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from simengine.kernels.kernel import Kernel
from simengine.physics.islands.pgs_islands import PGS_DESCEND, PGS_START
from simengine.physics.stage import Form
from simengine.plan.forms import has_form, in_form

_BLOCKS_OF_LARGE = 6
"""How many large islands a multiprocessor should hold at once. Their blocks wait for barriers most of the time."""

_BLOCKS_OF_FEW_LARGE = 4  # up to which a thread has the registers that it asks for

_BLOCKS_OF_PAIRS = 8  # of 128 threads: as many threads as two huge islands have


@cache
def for_large(kernel: Kernel) -> Kernel | None:
    """The kernel that replaces a kernel over islands for large islands; None if its stage has no such form."""
    (stage,) = kernel.stages
    if kernel.unit != "island" or not has_form(stage, Form.LARGE):
        return None
    large = in_form(stage, Form.LARGE)
    # A whole block solves a large island, except with PGS, which visits the rows one after another.
    by_block = stage not in (PGS_START, PGS_DESCEND)
    return Kernel(
        f"{large.name}_islands",
        (large,),
        unit="large island",
        block_per_unit=by_block,
        min_blocks_per_multiprocessor=_BLOCKS_OF_LARGE if by_block else 1,
    )


@cache
def for_few_large(kernel: Kernel) -> Kernel:
    """The variant of a kernel over large islands for few worlds, whose threads have all registers that they ask for."""
    if not kernel.block_per_unit:
        return kernel
    return replace(kernel, name=f"{kernel.name}_few", min_blocks_per_multiprocessor=_BLOCKS_OF_FEW_LARGE)


@cache
def for_many_huge(kernel: Kernel) -> Kernel:
    """The variant for huge islands of more worlds than a GPU has multiprocessors, each of which then has two."""
    if not kernel.block_per_unit:
        return kernel
    return replace(kernel, name=f"{kernel.name}_in_pairs", min_blocks_per_multiprocessor=_BLOCKS_OF_PAIRS)
