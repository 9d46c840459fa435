"""Which models have a kernel of whole steps on a GPU, and how much memory their worlds take; see `StepKernel`."""

from __future__ import annotations

from typing import NamedTuple

from simengine.backends.base import LANE_CLASSES, Backend
from simengine.kernels.placing import ScratchPlan
from simengine.kernels.step_kernel import TEAMS, StepKernel, step_kernel
from simengine.model.model_table import ModelTable
from simengine.model.pair_types import PAIRS
from simengine.plan import catalogue
from simengine.plan.scratch import column_words, lanes_of_world
from simengine.state.fields import ROW_CLASSES


class StepMemory(NamedTuple):
    """The memory of one world in a kernel of whole steps.

    Attributes:
        in_shared: offsets of the fields in shared memory.
        in_global: offsets of the other fields in global memory.
        shared_rows: largest number of constraint rows that are in shared memory.
        scratch: shared memory of a world [bytes].
    """

    in_shared: ScratchPlan
    in_global: ScratchPlan
    shared_rows: int
    scratch: int


MAX_GLOBAL_BYTES = 2**28
"""Bytes of global memory that the worlds of a group may take for a kernel of whole steps."""


def step_kernel_for(model: ModelTable) -> StepKernel | None:
    """The kernel of whole steps of a model; None if the model has a feature that such kernels do not support."""
    special = model.general_smooth or model.has_adhesion or model.has_islands or model.neq or model.nfriction
    more = model.finds_pairs or model.na or model.opt_noslip_iterations or model.nv > LANE_CLASSES[-1]
    known = all(PAIRS[code].plain or not PAIRS[code].heavy for code in model.pair_codes)
    if special or more or not known or not catalogue.is_fused(model.opt_integrator, model.solver):
        return None
    plain = any(PAIRS[code].plain for code in model.pair_codes)
    return step_kernel(model.opt_integrator, model.has_fluid, plain)


def step_memory(kernel: StepKernel, model: ModelTable, backend: Backend, word: int) -> StepMemory:
    """Compute the memory of one world.

    Args:
        kernel: a kernel of whole steps.
        model: the model of the world.
        backend: a GPU backend.
        word: bytes of a real number.
    """
    most = model.nefc_max
    shared_rows = min(most, ROW_CLASSES[-1])
    in_shared = kernel.plan_scratch(model.sizes, shared_rows, backend.registers(model.nv))
    in_global = kernel.plan_global(model.sizes, model.ncon_max, most if most > shared_rows else 0)
    columns = TEAMS * column_words(backend, lanes_of_world(model, backend))
    return StepMemory(in_shared, in_global, shared_rows, word * (in_shared.words + columns))
