"""Solvers without the code for elliptic cones have the same bits as those with it, where contacts have pyramids.

Both run on the host as on a GPU, with lanes as fibers.
"""

from __future__ import annotations

import numpy as np
import pytest

from simengine.kernels.kernel import Kernel
from simengine.plan import catalogue
from simengine.plan.stages import CONSTRAINT_GENERAL, SOLVE_CG, SOLVE_NEWTON_GENERAL, SOLVE_PGS
from simengine.plan.variants import by_warps, with_dual_rows, with_matrix_rows, without_cones
from tests.helpers.cuda_on_host.program import FIRST_TO_LAST, SCHEDULES, Schedule
from tests.helpers.cuda_on_host.resident import FiberResident
from tests.kernels.test_one_warp_as_two import assert_hard, before_solution
from tests.stages.harness import Memory, arguments, changed
from tests.stages.harness_chain import most_rows

FINISH = catalogue.finish("", SOLVE_NEWTON_GENERAL.name, False)
GRADIENTS, DUAL = (catalogue.finish("", solver.name, False) for solver in (SOLVE_CG, SOLVE_PGS))

FORMS = {
    "one warp": (3, FINISH),
    "two rows in a lane": (27, with_matrix_rows(FINISH, 36)),
    "arena": (3, catalogue.finish("", SOLVE_NEWTON_GENERAL.name, True)),
    "one warp as two": (3, by_warps(FINISH, 9, 2, in_one=True)),
    "two warps": (3, by_warps(FINISH, 9, 2)),
    "conjugate gradients": (3, GRADIENTS),
    "sweeps": (3, DUAL),
    "sweeps, arena": (3, catalogue.finish("", SOLVE_PGS.name, True)),
    "sweeps in registers": (13, with_dual_rows(DUAL, 32)),
}
"""Links of a chain, which has six dofs more, and the kernel that makes its rows and solves."""


def written(kernel: Kernel) -> set[str]:
    """What the kernel writes, whose bits must be the same."""
    return {*CONSTRAINT_GENERAL.writes, *kernel.stages[-1].writes} - {"efc_weight"}


def finished(memory: Memory, kernel: Kernel, schedule: Schedule = FIRST_TO_LAST) -> Memory:
    """The memory after the kernel has run for the worlds of the list."""
    away = FiberResident(memory.copy(), schedule)
    away.call(kernel, arguments(kernel, away.memory, True, most_rows(memory)), worlds_a_block=1)
    away.fetch()
    return away.memory


@pytest.mark.parametrize("form", FORMS)
def test_no_code_for_cones_has_the_same_bits(form: str) -> None:
    links, kernel = FORMS[form]
    memory = before_solution(links, "pyramidal", "float32", 12, (1, 256), 120)
    lean = without_cones(kernel)
    there = finished(memory, kernel)
    assert_hard(there, 4)
    here = finished(memory, lean)
    assert {name for name in written(kernel) if changed(there.own(name), here.own(name)).any()} == set()


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_they_do_not_depend_on_the_order_of_lanes(form: str) -> None:
    links, kernel = FORMS[form]
    memory = before_solution(links, "pyramidal", "float32", 12, (1, 256), 120)
    found = [finished(memory, without_cones(kernel), schedule) for schedule in SCHEDULES]
    for other in found[1:]:
        assert [name for name in written(kernel) if changed(found[0].own(name), other.own(name)).any()] == []


def test_a_row_takes_five_words_less() -> None:
    sizes = before_solution(3, "pyramidal", "float32", 12, (1, 256), 120).model.sizes
    words = [kernel.plan_scratch(sizes, 256, True).words for kernel in (FINISH, without_cones(FINISH))]
    assert np.diff(words) == -5 * 256
