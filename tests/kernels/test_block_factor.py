"""Large islands of small blocks, which a GPU solves by a sparse factor in shared memory.

The kernel runs on the host, with lanes as fibers, in shared memory that begins with other bytes each time.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from simengine.kernels.kernel import Kernel
from simengine.model import load_table
from simengine.physics.islands.solve_large import SOLVE_LARGE
from simengine.plan.islands import ISLAND_KERNELS
from simengine.plan.variants import without_cones
from simengine.state.fields import FIELD
from simengine.state.island_fields import LARGE_ISLANDS
from tests.helpers.cuda_on_host.program import FIRST_TO_LAST, SCHEDULES, Edit, Schedule
from tests.helpers.cuda_on_host.resident import FiberResident
from tests.helpers.islands import chain, dropped, every_row, heap, over_islands, pile, prepared
from tests.stages.harness import Memory, call, changed

(SOLVER,) = (kernel for kernel in ISLAND_KERNELS if kernel.stages == (SOLVE_LARGE,))
MODELS = {
    "rows that push": pile("pyramidal", 30),
    "elliptic cones": pile("elliptic", 30),
    "rows of every type": every_row(heap(24, clump=12, rise=0.15)),
}
"""Free bodies among walls, with an arm of three dofs, and towers of free bodies beside arms of five dofs."""


@cache
def before_solution(name: str, dtype: str) -> Memory:
    """Worlds with towers and what falls of them, with all that the solver reads."""
    model = load_table(MODELS[name])
    model.solve_dense_up_to(16)
    memory = prepared(model, dtype, dropped(MODELS[name], (0, 30, 60, 90)))
    for kernel, slots in chain(memory, upto=SOLVER.name):
        call(kernel, memory, slots)
    assert memory.own("island_totals")[LARGE_ISLANDS] >= 2
    return memory


def solved(memory: Memory, kernel: Kernel, schedule: Schedule = FIRST_TO_LAST, edit: Edit = str) -> Memory:
    """The memory after a GPU's kernel has solved the large islands."""
    away = FiberResident(memory.copy(), schedule, edit)
    away.call(kernel, over_islands(kernel, away.memory, LARGE_ISLANDS), parts=8)  # a world has no more of them
    away.fetch()
    return away.memory


def iterations(before: Memory, after: Memory) -> int:
    """Iterations over all islands that were solved."""
    ours = after.own("island_solver_niter")
    return int(ours[changed(before.own("island_solver_niter"), ours)].sum())


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        *((name, "float32") for name in MODELS),
        ("rows of every type", "float64"),
        pytest.param("rows that push", "float64", marks=pytest.mark.slow),
        pytest.param("elliptic cones", "float64", marks=pytest.mark.slow),
    ],
)
def test_large_islands_have_the_hosts_solution_whatever_shared_memory_begins_with(name: str, dtype: str) -> None:
    memory = before_solution(name, dtype)
    ours, *others = (solved(memory, SOLVER, schedule) for schedule in SCHEDULES)
    assert not any(changed(ours.own(field), other.own(field)).any() for field in FIELD for other in others)
    host = memory.copy()
    call(SOLVER, host, over_islands(SOLVER, host, LARGE_ISLANDS))
    written = changed(memory.own("island_qacc"), host.own("island_qacc"))
    assert written.sum() > 150
    found, expected = ours.own("island_qacc")[written], host.own("island_qacc")[written]
    relative = {"float32": 1e-4, "float64": 1e-10}[dtype]
    np.testing.assert_allclose(found, expected, rtol=0, atol=relative * np.abs(expected).max())
    assert iterations(memory, ours) <= iterations(memory, host) + 3


def test_islands_without_elliptic_cones_have_the_same_bits_without_the_code_for_them() -> None:
    memory = before_solution("rows that push", "float32")
    there, here = (solved(memory, kernel) for kernel in (SOLVER, without_cones(SOLVER)))
    assert {field for field in FIELD if changed(there.own(field), here.own(field)).any()} <= {"island_efc_weight"}
    assert iterations(memory, here) > 0


def test_islands_without_room_for_their_factor_have_conjugate_gradients() -> None:
    """They iterate more often, and have the same solution but for rounding."""
    memory = before_solution("rows of every type", "float64")
    exact = solved(memory, SOLVER)
    inexact = solved(memory, SOLVER, edit=lambda text: text.replace("blocks > room", "blocks > 10"))
    assert iterations(memory, inexact) > iterations(memory, exact)
    written = changed(memory.own("island_qacc"), exact.own("island_qacc"))
    ours, theirs = exact.own("island_qacc")[written], inexact.own("island_qacc")[written]
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-6 * np.abs(ours).max())
