"""Worlds have the same bits where one kernel makes their rows and another one solves as where one does both.

All run on the host as on a GPU, with lanes as fibers.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from simengine import Model, Simulation
from simengine.backends import select
from simengine.kernels.kernel import Kernel
from simengine.model import load_table
from simengine.plan import catalogue
from simengine.plan.issue import decide_issuing
from simengine.plan.rows_apart import rows_apart
from simengine.plan.stages import CONSTRAINT_GENERAL, SOLVE_NEWTON_GENERAL
from simengine.plan.step_plan import plan_step
from simengine.plan.variants import along_branches, by_warps, with_jacobian_in_memory, with_matrix_rows, without_cones
from simengine_scheduler import KernelCall
from simengine_scheduler.core.dependencies import dependencies
from tests.emission.test_memory import GpuOnPaper
from tests.emission.test_moves import items_of
from tests.helpers.cuda_on_host.backend import FiberBackend
from tests.helpers.cuda_on_host.program import FIRST_TO_LAST, SCHEDULES, Schedule
from tests.helpers.cuda_on_host.resident import FiberResident
from tests.helpers.humanoids import humanoid_xml
from tests.kernels.test_one_warp_as_two import assert_hard, before_solution, chain
from tests.stages.harness import Memory, arguments, changed
from tests.stages.harness_chain import most_rows

FINISH = catalogue.finish("", SOLVE_NEWTON_GENERAL.name, False)


def wide(kernel: Kernel) -> Kernel:
    """The variant for 33 to 36 dofs and pyramidal cones."""
    return with_matrix_rows(without_cones(kernel), 36)


FORMS: dict[str, tuple[int, str, Kernel, Callable[[Kernel], Kernel]]] = {
    "one warp": (3, "elliptic", FINISH, lambda kernel: kernel),
    "one warp as two": (3, "elliptic", FINISH, lambda kernel: by_warps(kernel, 9, 2, in_one=True)),
    "two rows in a lane": (27, "pyramidal", FINISH, wide),
    "Jacobian in memory": (27, "pyramidal", with_jacobian_in_memory(FINISH), wide),
    "branches": (60, "pyramidal", along_branches(FINISH), lambda kernel: kernel),
}
"""Links of a chain, its cones, the kernel that makes rows and solves, and its variant, also of what solves apart."""

WRITTEN = frozenset((*CONSTRAINT_GENERAL.writes, *SOLVE_NEWTON_GENERAL.writes)) - {"efc_weight"}


def after(memory: Memory, kernels: tuple[Kernel, ...], schedule: Schedule = FIRST_TO_LAST) -> Memory:
    """The memory after the kernels have run for the worlds of the list."""
    there = memory
    for kernel in kernels:
        away = FiberResident(there.copy(), schedule)
        away.call(kernel, arguments(kernel, away.memory, True, most_rows(memory)), worlds_a_block=1)
        away.fetch()
        there = away.memory
    return there


def differing(form: str, schedule: Schedule) -> set[str]:
    """Fields whose bits differ."""
    links, cone, kernel, variant = FORMS[form]
    rows, solver = rows_apart(kernel)
    memory = before_solution(links, cone, "float32", 12, (1, 256), 120)
    there, here = after(memory, (variant(kernel),)), after(memory, (rows, variant(solver)), schedule)
    assert_hard(there, 3)
    return {name for name in WRITTEN if changed(there.own(name), here.own(name)).any()}


@pytest.mark.parametrize("form", FORMS)
def test_rows_apart_have_the_same_bits(form: str) -> None:
    assert differing(form, FIRST_TO_LAST) == set()


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_they_do_not_depend_on_the_order_of_lanes(form: str) -> None:
    for schedule in SCHEDULES:
        assert differing(form, schedule) == set()


def test_a_solver_waits_for_its_own_rows_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("simengine.plan.selection.MERGED_WORLDS", 0)
    monkeypatch.setattr("simengine.plan.selection.MOST_DOFS_OF_ONE_KERNEL", 32)
    monkeypatch.setattr("simengine.plan.selection.MOST_WORLDS_OF_ONE_KERNEL", 0)
    monkeypatch.setitem(select._MAKERS, "cuda", FiberBackend)
    with Simulation(Model(chain(30, "pyramidal")), 2, backend="cuda", executor="serial", dtype="float32") as sim:
        calls = [item for item in items_of(sim, 1) if isinstance(item, KernelCall)]
        waits = dependencies(calls, sim.schedule.segments.conflicts)
    waited = {call.name: [calls[other].name for other in others] for call, others in zip(calls, waits, strict=True)}
    solvers = [name for name in waited if "_of_rows_" in name]
    assert len(solvers) >= 4
    for name in solvers:
        bound = name.rsplit("_", 1)[1]
        assert [other.rsplit("_", 1)[1] for other in waited[name] if other.startswith("rows_of_")] == [bound]
        assert not [other for other in waited[name] if "_of_rows_" in other]


@pytest.mark.parametrize(
    ("nv", "worlds", "apart"),
    [(30, 32768, False), (60, 8192, False), (60, 32768, True), (100, 2048, False), (100, 8192, True)],
)
def test_many_worlds_of_many_dofs_have_rows_apart(nv: int, worlds: int, apart: bool) -> None:
    model, gpu = load_table(humanoid_xml(nv)), GpuOnPaper()
    plan = plan_step(model, worlds, gpu, "float32", decide_issuing([model], gpu, "auto", "auto", {}), shards=1)
    names = [kernel.name for kernel in plan.kernels(frozenset())]
    assert any(name.startswith("rows_of_") for name in names) == apart
