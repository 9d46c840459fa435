"""Rows that a solver has in scratch take no room in the arenas of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simengine import Simulation, load_model
from simengine.emission.store import GroupStore
from simengine.model import load_table
from simengine.plan import contact_kernels
from simengine.plan.issue import decide_issuing
from simengine.plan.step_plan import StepPlan, plan_step
from simengine.plan.stored_rows import NO_WORLD
from simengine.state.fields import COLUMNS, FIELDS, NUM_COLUMNS, ROW_SPACES, TOTALS, WORLD_ARENAS
from tests.emission.test_memory import GpuOnPaper
from tests.helpers.humanoids import humanoid_xml
from tests.helpers.islands import heap
from tests.models import OWN, gymnasium_path
from tests.stages.harness import FRONT, Memory, arguments, call

NOTHING = frozenset[str]()
ROWS = (0, 3, 9, 64, 65, 129, 5)


def beyond(source: str, wanted: frozenset[str] = NOTHING, emission: str = "ahead", n: int = 64) -> tuple[int, ...]:
    """Rows up to which worlds of a GPU have none in the arenas of rows and of Jacobians."""
    model, gpu = GpuOnPaper().form_of(load_table(source), "float32"), GpuOnPaper()
    issuing = decide_issuing([model], gpu, "serial", emission, {})
    plan: StepPlan = plan_step(model, n, gpu, "float32", issuing, shards=1)
    evaluation = plan.evaluation(n, model.opt_integrator, 0, wanted, emission == "ahead")
    return tuple(evaluation.scalars[f"{space}_beyond"] for space in ROW_SPACES)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (str(gymnasium_path("ant")), (NO_WORLD, NO_WORLD)),  # which has at most 116 rows
        (humanoid_xml(35, frictionloss=0.0), (128, 128)),
        (heap(12), (0, NO_WORLD)),  # islands have Jacobians of their own
    ],
    ids=["ant", "humanoid", "heap"],
)
def test_only_worlds_of_many_rows_have_them_in_memory(source: str, expected: tuple[int, int]) -> None:
    assert beyond(source) == expected


def test_large_batches_of_wide_models_have_jacobians_of_more_worlds_in_memory() -> None:
    assert beyond(humanoid_xml(35, frictionloss=0.0), n=8192) == (128, 64)


def test_every_row_is_in_memory_where_somebody_asks_for_it() -> None:
    ant = str(gymnasium_path("ant"))
    assert beyond(ant, frozenset(field.name for field in FIELDS)) == (0, 0)
    assert beyond(ant, frozenset({"efc_force"})) == (0, NO_WORLD)
    assert beyond(ant, frozenset({"efc_J"})) == (NO_WORLD, 0)
    assert beyond(ant, frozenset({"cfrc_ext"})) == (0, NO_WORLD)  # which adds up forces of rows
    assert beyond(ant, emission="stages") == (0, 0)


def counted(room: dict[str, int], progress: int = 0) -> Memory:
    """A memory after the scan of worlds with ROWS, of which those with more than 8 and 64 have rows in arenas."""
    n = len(ROWS)
    memory = Memory(load_table(OWN["two_arms"]), "float32", n, 0, 0)
    counts = memory.own("counts").reshape(NUM_COLUMNS, n)
    counts[...] = 0
    counts[COLUMNS.index("nefc")] = ROWS
    counts[COLUMNS.index("rows_more"), ROWS.index(129)] = 1
    for name in ("progress", "progress_host"):
        memory.own(name)[...] = 0
        memory.own(name).ravel()[: len(WORLD_ARENAS)] = progress
    scalars = {"row_beyond": 64, "jacobian_beyond": 8, **{f"{space}_capacity": size for space, size in room.items()}}
    call(contact_kernels.SCAN_KERNEL, memory, arguments(contact_kernels.SCAN_KERNEL, memory, scalars=scalars))
    return memory


def test_the_scan_gives_room_to_the_rows_in_memory() -> None:
    memory = counted({"row": 65 + 129, "jacobian": 9 + 64 + 65 + 129 - 1})
    totals = dict(zip(TOTALS, memory.own("totals").ravel().tolist(), strict=True))
    assert (totals["nefc"], totals["row"], totals["jacobian"]) == (sum(ROWS), 65 + 129, 9 + 64 + 65 + 129)
    np.testing.assert_array_equal(memory.own("efc_adr"), [0, 0, 0, 0, 0, 65, 194])
    np.testing.assert_array_equal(memory.own("efc_J_adr"), [0, 0, 0, 9, 73, 138, 267])
    assert memory.own("lists").reshape(NUM_COLUMNS, -1)[COLUMNS.index("rows_more"), 0] == FRONT + ROWS.index(129)
    assert memory.own("progress").ravel()[:6].tolist() == [0, 0, 1, 1, 1, 0]


def test_an_arena_that_was_too_small_stays_full() -> None:
    """A later evaluation of the same step may need less of it, but it starts from a state that was never made."""
    memory = counted({}, progress=1)
    assert memory.own("progress").ravel()[:6].tolist() == [1, 1, 1, 0, 0, 0]


def test_arenas_stay_small_where_no_world_has_rows_in_memory() -> None:
    with Simulation(load_model(gymnasium_path("ant")), 300, backend="host", executor="serial", emission="ahead") as sim:
        sim.step(120)
        assert sim.schedule.counts()["nefc"] > 64
        engine: Any = sim._engine
        (store,) = engine.stores.values()
        assert {store.arena(space, 0).capacity for space in ROW_SPACES} == {64}
        sim.forward()
        for space in ROW_SPACES:
            capacities = [store.arena(space, shard).capacity for shard in range(len(store.bounds) - 1)]
            assert sum(capacities) >= sim.schedule.counts()["nefc"]
        rows = sim.groups[0].constraints(299)
        assert rows.J.shape[0] == sim.groups[0].to_host(sim.groups[0].field("nefc"))[299]


def test_an_arena_of_few_rows_doubles_until_it_has_half_of_what_all_rows_start_with() -> None:
    model, gpu = load_table(humanoid_xml(35, frictionloss=0.0)), GpuOnPaper()
    issuing = decide_issuing([model], gpu, "serial", "ahead", {})
    store = GroupStore("group", plan_step(model, 40_000, gpu, "float32", issuing, shards=1))
    arena = store.rows[0]
    assert arena.capacity == 120_000
    for room in (240_000, 480_000, 960_000, 1_200_000):
        arena.reserve(arena.capacity + 1)
        assert arena.capacity == room
