"""PGS with rows in the registers of a warp: host threads run the GPU's code under the thread sanitizer."""

from __future__ import annotations

from pathlib import Path

import pytest

import simengine
from simengine import load_model
from simengine.backends.base import DUAL_ROWS, dual_rows_for
from simengine.plan.evaluation import Launch, plan_evaluation
from simengine.plan.selection import Selection
from simengine.plan.variants import with_rows_in_registers
from tests.kernels.test_dense import passes

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
    assert {f"finish_pgs_rows_96_{rows}" for rows in (8, 16, 32, 64, 128)} < set(many)


def test_rows_in_the_arena_and_other_solvers_have_no_such_variant() -> None:
    assert launches("humanoid", 64)["finish_pgs_arena"] == "finish_pgs_arena"
    assert all("rows_96" not in name for name in launches("ant", 64).values())
