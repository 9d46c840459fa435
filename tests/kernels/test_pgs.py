"""PGS with rows in the registers of a warp: host threads run the GPU's code under the thread sanitizer."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import simengine
from simengine import load_model
from simengine.backends.base import DUAL_ROWS, dual_rows_for
from simengine.kernels.kernel import Kernel
from simengine.plan.evaluation import plan_evaluation
from simengine.plan.launches import Launch
from simengine.plan.selection import Selection
from simengine.plan.stages import SOLVE_PGS
from simengine.plan.variants import HALF_WARP, with_rows_in_half_warps, with_rows_in_registers
from tests.helpers.cuda_on_host.program import FIRST_TO_LAST, SCHEDULES, Schedule
from tests.helpers.cuda_on_host.resident import FiberResident
from tests.kernels.test_dense import passes
from tests.stages.harness import FRONT, Memory, arguments, call, changed, list_worlds
from tests.stages.harness_chain import calls


def finished(memory: Memory, kernel: Kernel, worlds: int = 1, schedule: Schedule = FIRST_TO_LAST) -> Memory:
    """The memory after lanes as fibers have solved the worlds of the list, several in a block."""
    away = FiberResident(memory.copy(), schedule)
    away.call(kernel, arguments(kernel, away.memory, True, HALF_WARP), worlds_a_block=worlds)
    away.fetch()
    return away.memory


SOLVER = Path(simengine.__file__).parent / "physics"
FOLDERS = [f"-I{SOLVER / folder}" for folder in ("solvers", "constraints")]


@pytest.mark.sanitizer
@pytest.mark.parametrize("rows", [(1, 2, 31), (32, 33, 63), (64, 65, 95), (96, 97, 45)])
def test_sweeps_in_registers_are_those_over_memory(tmp_path: Path, rows: tuple[int, ...]) -> None:
    passes(tmp_path / "pgs", "pgs_of_threads.cpp", rows, f"-DPGS_ROWS={DUAL_ROWS['float32']}", *FOLDERS)


@pytest.mark.parametrize("rows", [8, 32, 64, 128])
def test_scratch_holds_the_pull_of_every_row_on_every_other(rows: int) -> None:
    kernel = with_rows_in_registers("float32")
    plan = kernel.plan_scratch(load_model("humanoid").table.sizes, rows, True)
    solver = len(kernel.stages) - 1
    alive = {item.name for item in kernel.scratch_items if item.first <= solver <= item.last}
    start = plan.offsets["solve_pgs_pull"]
    after = [plan.offsets[name] for name in alive if plan.offsets[name] > start]
    held = min(rows, DUAL_ROWS["float32"])
    assert min([plan.words, *after]) - start >= held * -(-held // 32) * 32


def launches(text: str, worlds: int) -> dict[str, str]:
    """Kernels of solvers in a step as a GPU has it, by the names of the calls."""
    table = load_model(text).table
    dual = dual_rows_for(table.nv, "float32")
    plan = plan_evaluation(Selection(table, worlds, "", frozenset(), True, dual_rows=dual), 0)
    found = (item for item in plan.launches if isinstance(item, Launch))
    return {item.name: item.kernel.name for item in found if item.kernel.name.startswith("finish")}


def test_many_worlds_with_rows_in_registers_are_solved_by_size_class() -> None:
    few, many = launches("humanoid", 64), launches("humanoid", 1024)
    assert {"finish_pgs_rows_96_bounded", "finish_pgs_arena"} == set(few)
    assert {f"finish_pgs_rows_96_{rows}" for rows in (32, 64, 128)} < set(many)
    assert {f"finish_pgs_in_sixteen_rows_16_{rows}" for rows in (8, 16)} < set(many)


def few_rows(worlds: int, dtype: str) -> Memory:
    """A memory of humanoids before the solver, whose list has the worlds with rows for half a warp."""
    model, rng = load_model("humanoid").table, np.random.default_rng(3)
    memory = Memory(model, dtype, worlds, 20 * worlds, 100 * worlds)
    for name in ("act", "ctrl", "qfrc_applied", "xfrc_applied", "world_status", "nstep"):
        memory.own(name)[...] = 0
    qpos = np.tile(model.mj.qpos0, (worlds, 1))
    qpos[:, 2] += rng.uniform(-0.2, 0, worlds)
    qpos[:, 7:] += rng.uniform(-0.3, 0.3, (worlds, model.nq - 7))
    qvel, warm = rng.normal(size=(2, worlds, model.nv))
    memory.set({"qpos": qpos, "qvel": qvel, "qacc_warmstart": 30 * warm})
    for kernel, slots in calls(memory, "", 0):
        if SOLVE_PGS in kernel.stages:
            break
        call(kernel, memory, slots)
    rows = memory.own("nefc").ravel()
    list_worlds(memory, np.flatnonzero((rows > 0) & (rows <= HALF_WARP)).astype(np.int32))
    return memory


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_half_a_warp_has_the_bits_of_a_warp(dtype: str) -> None:
    memory, whole = few_rows(24, dtype), with_rows_in_registers(dtype)
    there, here = finished(memory, whole), finished(memory, with_rows_in_half_warps(dtype), 2)
    sweeps = there.own("solver_niter").ravel()[memory.arrays["listed"][: memory.arrays["num_listed"][0]] - FRONT]
    assert len(sweeps) >= 6
    assert sweeps.max() > 2 * sweeps.min()
    written = (name for stage in whole.stages for name in stage.writes if name != "efc_weight")
    assert not {name for name in written if changed(there.own(name), here.own(name)).any()}


@pytest.mark.slow
def test_half_a_warp_does_not_depend_on_the_order_of_lanes() -> None:
    memory, kernel = few_rows(8, "float32"), with_rows_in_half_warps("float32")
    found = [finished(memory, kernel, 4, schedule) for schedule in SCHEDULES]
    written = [name for stage in kernel.stages for name in stage.writes]
    assert not {name for name in written for other in found if changed(found[0].own(name), other.own(name)).any()}
