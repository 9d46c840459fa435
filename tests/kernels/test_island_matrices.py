"""Islands that are smaller than the matrices for which a GPU's solver of islands is compiled.

The kernels run on the host, with lanes as fibers, in shared memory that begins with other bytes each time.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from simengine.kernels.kernel import Kernel
from simengine.model import load_table
from simengine.plan.islands import ISLAND_SOLVERS
from simengine.plan.stages import SOLVE_NEWTON_UNILATERAL
from simengine.plan.variants import with_block_rows, with_matrix_rows
from simengine.state.fields import FIELD
from simengine.state.island_fields import ISLAND_CLASSES, LARGE_ISLANDS
from tests.helpers.cuda_on_host.program import SCHEDULES, Schedule
from tests.helpers.cuda_on_host.resident import FiberResident
from tests.helpers.islands import chain, over_islands, prepared
from tests.stages.harness import Memory, call, changed

BODIES = 20
(SOLVER,) = ISLAND_SOLVERS[SOLVE_NEWTON_UNILATERAL.name]


@cache
def before_solution(touching: tuple[int, ...]) -> Memory:
    """A world for each number of spheres that touch in a row, with all that the solver reads."""
    spheres = "".join("<body><freejoint/><geom size='0.1'/></body>" for _ in range(BODIES))
    model = load_table(f"<mujoco><worldbody><geom type='plane' size='9 9 1'/>{spheres}</worldbody></mujoco>")
    model.solve_dense_up_to(6 * BODIES)
    qpos = np.zeros((len(touching), BODIES, 7))
    qpos[..., 2], qpos[..., 3] = 0.0999, 1
    for world, number in enumerate(touching):
        qpos[world, :, 0] = np.cumsum([0.1999] * number + [0.5] * (BODIES - number))
    qvel = np.random.default_rng(2).normal(size=(len(touching), 6 * BODIES))
    states = {"qpos": qpos.reshape(len(touching), -1), "qvel": qvel}
    memory = prepared(model, "float32", {n: x.astype(np.float32).astype(np.float64) for n, x in states.items()})
    for kernel, slots in chain(memory, upto=SOLVER.name):
        call(kernel, memory, slots)
    return memory


def solved(memory: Memory, kernel: Kernel, island_class: int, schedule: Schedule) -> Memory:
    """The memory after a GPU's kernel has solved the islands of a class."""
    away = FiberResident(memory.copy(), schedule)
    away.call(kernel, over_islands(kernel, away.memory, island_class))
    away.fetch()
    return away.memory


FORMS = {"warp": (with_matrix_rows(SOLVER, 60), (6, 7, 9, 10)), "block": (with_block_rows(SOLVER, 120), (11, 14, 20))}
"""A kernel for the largest island of a class, and numbers of spheres of six dofs that are in one."""


@pytest.mark.parametrize("form", FORMS)
def test_islands_do_not_depend_on_what_shared_memory_begins_with(form: str) -> None:
    kernel, touching = FORMS[form]
    memory = before_solution(touching)
    island_class = next((c for c, bound in enumerate(ISLAND_CLASSES) if bound >= 6 * touching[-1]), LARGE_ISLANDS - 1)
    ours, *others = (solved(memory, kernel, island_class, schedule) for schedule in SCHEDULES)
    assert not any(changed(ours.own(name), other.own(name)).any() for name in FIELD for other in others)
    host = memory.copy()
    call(SOLVER, host, over_islands(SOLVER, host, island_class))
    written = changed(memory.own("island_qacc"), host.own("island_qacc"))
    assert written.sum() == 6 * sum(touching)
    np.testing.assert_allclose(ours.own("island_qacc")[written], host.own("island_qacc")[written], rtol=1e-4, atol=1e-2)
