"""Kernels that solve worlds island by island, with lanes as threads and under sanitizers; see test_sanitizers.py."""

from __future__ import annotations

import re
from itertools import groupby

import numpy as np
import pytest

from simengine.kernels.kernel import Kernel
from simengine.model import ModelTable, load_table
from simengine.physics.solvers.solve_newton_unilateral import SOLVE_NEWTON_UNILATERAL
from simengine.state.fields import FIELD
from simengine.state.island_fields import LARGE_ISLANDS
from tests.helpers.islands import chain, dropped, heap, prepared
from tests.stages.harness import Memory
from tests.stages.harness_sanitizer import build, execute, record
from tests.stages.test_sanitizers import KINDS, UNCOMPARED, require

pytestmark = [pytest.mark.sanitizer]

HEAP, STEPS = heap(12, clump=11, rise=0.15), (0, 60)
"""A tower, which is one large island, and what has fallen of it."""


def model(solver: str) -> ModelTable:
    """The tower, of which the largest piece is a large island. Where PGS solves it, its pairs are found anew: one is
    explicit, and some are excluded."""
    contact = '<contact><pair geom1="near" geom2="floor"/><exclude body1="loose2" body2="loose3"/></contact>'
    xml = HEAP.replace("<option", f'<option solver="{solver}"')
    if solver == "PGS":
        xml = re.sub(r'(<body name=.loose0.[^>]*><freejoint/><geom) size="0.12"', r'\1 name="near" size="0.12"', xml)
        xml = xml.replace('<geom type="plane"', '<geom name="floor" type="plane"').replace(
            "<tendon>", contact + "<tendon>"
        )
    tower = load_table(xml)
    tower.solve_dense_up_to(16)
    tower.find_pairs(solver == "PGS")
    return tower


def unit_of(kernel: Kernel) -> str:
    """Kernels of one kind see the model through the same struct."""
    return "island" if kernel.on_islands else kernel.unit if kernel.unit == "slice" else "world"


@pytest.mark.parametrize("solver", ["Newton", "PGS"])
@pytest.mark.parametrize("kind", ["threads", "memory, four lanes"])
def test_no_reports_and_the_same_results(kind: str, solver: str) -> None:
    dtype, lanes, flags = KINDS[kind]
    require(flags)
    memory = prepared(model(solver), dtype, dropped(HEAP, STEPS))
    todo = list(chain(memory, "euler"))
    kernels = list(dict.fromkeys(kernel for kernel, _ in todo))
    of_unit = {unit: [k for k in kernels if unit_of(k) == unit] for unit in dict.fromkeys(map(unit_of, kernels))}
    programs = {unit: build(some, dtype, lanes, flags) for unit, some in of_unit.items()}
    for unit, calls in groupby(todo, key=lambda call: unit_of(call[0])):
        buffers, recorded = record(memory, calls)
        result = execute(programs[unit], of_unit[unit], buffers, recorded)
        assert not result.reports, result.reports[:3000]
        assert result.status == 0
        compare(result.buffers, memory, dtype)
    assert memory.own("nisland").max() > 2
    assert memory.own("island_totals")[LARGE_ISLANDS] > 0


def compare(found: dict[str, np.ndarray], memory: Memory, dtype: str) -> None:
    """Equal to what one lane computes but for rounding."""
    # what sorting counts, each lane counts for itself; one lane factors in other scratch than several
    working = (*UNCOMPARED, "_counter", "island_hessian", "island_vectors", "island_hessian_blocks")
    if memory.model.solver == SOLVE_NEWTON_UNILATERAL.name:  # one program of all kernels copies what nobody reads
        working += ("island_efc_type", "island_efc_id", "island_efc_frictionloss", "island_contact_efc_address")
    for field in (name for name in FIELD if not name.endswith(working)):
        ours, theirs = found[field], memory.arrays[field]
        if FIELD[field].kind == "int":
            np.testing.assert_array_equal(ours, theirs, err_msg=field)
            continue
        scale = max(1.0, float(np.nanmax(np.abs(theirs), initial=0.0)))
        relative = {"float64": 1e-9, "float32": 2e-3}[dtype]
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=relative * scale, err_msg=field)
