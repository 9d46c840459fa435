"""The memory of worlds is predicted to the byte, and worlds that do not fit are refused with the figures."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Any

import mujoco
import numpy as np
import pytest

from simengine import BackendError, Simulation, load_model
from simengine.backends.base import (
    Extent,
    StepShape,
    along_branches_for,
    block_rows_for,
    dual_rows_for,
    form_on_a_gpu,
    lanes_for,
    matrix_rows_for,
    solves_by_warps_for,
)
from simengine.backends.cuda import CudaBackend
from simengine.backends.host import HostBackend
from simengine.emission.store import Arena, GroupStore
from simengine.engines.list_engine import ListEngine
from simengine.kernels.functions import Build
from simengine.model import Model, ModelTable, load_table
from simengine.plan.capacity import first_entries
from simengine.plan.issue import Issue, Issuing
from simengine.plan.memory import footprint
from simengine.plan.step_plan import StepPlan, plan_step
from simengine.state.fields import INTEGRATION_STATE
from simengine_scheduler import HostLaunch
from simengine_scheduler.launch import BufferSet
from tests.helpers.islands import heap
from tests.models import OWN, gymnasium_path

WORLDS = 6
MODELS = {name: OWN[name] for name in ("two_arms", "dual", "ropes", "crates")} | {"heap": heap(12)}
LARGE = heap(45)


class GpuOnPaper(HostBackend):
    """The groups and the memory of the CUDA backend, with kernels that do nothing and memory of the host."""

    name = "cuda"
    wide_lanes = CudaBackend.wide_lanes
    island_lanes = CudaBackend.island_lanes

    def form_of(self, model: ModelTable, dtype: str) -> ModelTable:
        return form_on_a_gpu(model, dtype)

    def lanes(self, nv: int) -> int:
        return lanes_for(nv)

    def registers(self, nv: int) -> bool:
        return nv <= lanes_for(nv)

    def matrix_rows(self, nv: int, dtype: str) -> int:
        return matrix_rows_for(nv, dtype)

    def block_rows(self, nv: int, dtype: str) -> int:
        return block_rows_for(nv, dtype)

    def solves_by_warps(self, nv: int, dtype: str) -> bool:
        return solves_by_warps_for(nv, dtype)

    def along_branches(self, nv: int) -> bool:
        return along_branches_for(nv)

    def dual_rows(self, nv: int, dtype: str) -> int:
        return dual_rows_for(nv, dtype)

    def load(self, builds: Sequence[Build], dtype: str, own_tables: bool) -> list[Any]:
        return [lambda slots: None for _ in builds]

    def step_shape(self, all_worlds: int, groups: int, lanes: int, scratch_bytes: int) -> StepShape | None:
        return StepShape(1, 1)

    def launch_steps(
        self, function: Any, units: int, shape: StepShape, scratch_bytes: int, args: Sequence[Any], buffers: BufferSet
    ) -> HostLaunch:
        return HostLaunch(function, args, buffers)

    def resize(self, launch: HostLaunch, extent: Extent, packed: bool) -> HostLaunch:
        return launch


def host_plan(model: Model, num_worlds: int, issue: Issue = Issue.COUNTED) -> StepPlan:
    """The plan of steps in one shard on the host."""
    return plan_step(
        model, num_worlds, HostBackend(), "float32", Issuing("serial", issue.value, issue, False), shards=1
    )


def arenas(store: GroupStore) -> Iterable[tuple[str, int, Arena]]:
    """Arenas with their space and shard."""
    spaces = {"contact": store.contacts, "row": store.rows, "jacobian": store.jacobians, **store.islands, **store.pairs}
    return ((space, shard, arena) for space, shards in spaces.items() for shard, arena in enumerate(shards))


@pytest.mark.parametrize(("dtype", "emission", "shards"), [("float32", "ahead", 2), ("float32", "counted", 1)])
@pytest.mark.parametrize("name", MODELS)
def test_the_footprint_is_what_a_step_allocates(name: str, dtype: str, emission: str, shards: int) -> None:
    model, nothing = load_table(MODELS[name]), frozenset[str]()
    engine = ListEngine([(model, WORLDS)], HostBackend(), "serial", dtype, shards, emission, {})
    for field in INTEGRATION_STATE:
        engine.get(0, field)
    engine.step(2, nothing, {})
    store, needs = engine.stores[0], engine.footprint(0, WORLDS, nothing)
    grown, sizes, plan = 0, {}, store.plan
    for space, shard, arena in arenas(store):
        worlds = store.bounds[shard + 1] - store.bounds[shard]
        each = sum(int(array.nbytes) for array in arena.arrays.values()) // arena.capacity
        sizes[space] = each
        first = first_entries(store.model, space, worlds, plan.goes_ahead, plan.beyond(space, worlds))
        grown += each * (arena.capacity - first)
    assert (needs.contact, needs.row) == (sizes["contact"], sizes["row"] + sizes["jacobian"])
    assert engine.nbytes() - grown == needs.at_first
    assert engine.nbytes() <= needs.at_most or store.islands


@pytest.mark.parametrize(("entries", "more"), [(400, 2.0), (100_000, 1.25)])
def test_a_large_arena_grows_by_a_quarter_and_a_small_one_doubles(entries: int, more: float) -> None:
    engine = ListEngine([(load_table(OWN["crates"]), 40_000)], HostBackend(), "serial", "float32", 1, "counted", {})
    (contacts,) = engine.stores[0].contacts
    contacts.reserve(entries)
    assert contacts.capacity == entries
    contacts.reserve(entries + 1)
    assert contacts.capacity == more * entries == len(contacts.arrays["contact_dist"])
    contacts.reserve(10 * entries)
    assert contacts.capacity == 10 * entries


@pytest.mark.parametrize(("emission", "worlds"), [("ahead", 6), ("ahead", 3000), ("counted", 6)])
@pytest.mark.parametrize("name", [*MODELS, "rubble", "large", "found pairs"])
def test_the_footprint_on_the_gpu_is_what_the_calls_of_a_step_ask_for(name: str, emission: str, worlds: int) -> None:
    model = load_model(MODELS.get(name) or OWN.get(name, LARGE))
    if name == "found pairs":
        model.table.find_pairs(True)
    keep = frozenset({"cfrc_ext"})
    engine = ListEngine([(model.table, worlds)], GpuOnPaper(), "serial", "float32", 2, emission, {})
    for field in INTEGRATION_STATE:
        engine.get(0, field)
    for emitter in engine.emitters[0]:
        list(emitter.ahead(keep) if engine.emission == "ahead" and emitter.can_go_ahead else emitter.steps(1, keep))
    needs = engine.footprint(0, worlds, keep)
    assert engine.nbytes() == needs.at_first
    assert (needs.scratch > 0) == (model.nv > 256)
    assert (needs.pair > 0) == model.table.finds_pairs
    assert needs.at_most >= needs.at_first - needs.first + worlds * needs.row * model.table.nefc_max


@pytest.mark.parametrize("keep", [frozenset[str](), frozenset({"cfrc_ext"})], ids=["nothing", "cfrc_ext"])
@pytest.mark.parametrize("name", ["ant", "humanoid", "swimmer", "reacher"])
def test_the_footprint_of_whole_steps_is_what_they_ask_for(name: str, keep: frozenset[str]) -> None:
    mj = mujoco.MjModel.from_xml_path(str(gymnasium_path(name)))
    mj.opt.solver = mujoco.mjtSolver.mjSOL_NEWTON
    model = load_model(mj)
    engine = ListEngine([(model.table, 40)], GpuOnPaper(), "serial", "float32", None, "whole", {})
    for field in INTEGRATION_STATE:
        engine.get(0, field)
    emitter = engine.emitters[0][0]
    assert len(emitter.ahead(frozenset(), 2, whole=True)) == 1
    assert (len(emitter.ahead(keep, 2, whole=True)) > 1) == bool(keep)
    needs = engine.footprint(0, 40, keep)
    assert engine.nbytes() == needs.at_first
    assert (needs.scratch > 0) == (model.table.ncon_max > 0)


def test_arenas_grow_by_doubling_but_not_beyond_all_there_can_be() -> None:
    model = load_table(OWN["two_arms"])
    store = GroupStore("group", host_plan(model, 40))
    arena, most = store.rows[0], 40 * model.nefc_max
    first = arena.capacity
    arena.reserve(first + 1)
    assert arena.capacity == min(2 * first, most)
    arena.reserve(most)
    arena.reserve(most - 1)
    assert arena.capacity == most


def test_parameters_of_worlds_are_counted() -> None:
    sim = Simulation(load_model(OWN["two_arms"]), WORLDS, backend="host")
    before = sim.nbytes()
    sim.set_params(gravity=np.tile([0.0, 0.0, -5.0], (WORLDS, 1)))
    assert sim.nbytes() - before > WORLDS * 3 * 8


def test_worlds_that_do_not_fit_are_refused_before_anything_is_allocated(monkeypatch: pytest.MonkeyPatch) -> None:
    model = load_model(OWN["two_arms"])
    needs = Simulation(model, 10, backend="host", executor="serial").groups[0].footprint()
    monkeypatch.setattr(HostBackend, "free_memory", lambda self: needs.at_first)
    monkeypatch.setattr(HostBackend, "zeros", lambda *_: pytest.fail("memory was asked for"))
    with pytest.raises(BackendError, match=rf"11 worlds of model 'two_arms' take {needs.world} bytes each"):
        Simulation(model, 11, backend="host", executor="serial")
    monkeypatch.undo()
    monkeypatch.setattr(HostBackend, "free_memory", lambda self: needs.at_first)
    Simulation(model, 10, backend="host", executor="serial").step()


def test_the_first_room_of_arenas_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    model = load_model(OWN["two_arms"])
    plans = (host_plan(model.table, WORLDS, issue) for issue in (Issue.COUNTED, Issue.AHEAD))
    counted, ahead = (footprint(plan, frozenset()).at_first for plan in plans)
    assert ahead > counted
    monkeypatch.setattr(HostBackend, "free_memory", lambda self: (counted + ahead) // 2)
    Simulation(model, WORLDS, backend="host", executor="serial", emission="counted", shards=1)
    with pytest.raises(BackendError, match="memory for their first contacts"):
        Simulation(model, WORLDS, backend="host", executor="serial", emission="ahead", shards=1)


def test_the_jax_backend_cannot_tell() -> None:
    with pytest.raises(BackendError, match="use backend='host'"):
        Simulation(load_model(OWN["two_arms"]), 1, backend="jax").groups[0].footprint()


def test_the_machine_tells_how_much_is_free() -> None:
    free = HostBackend().free_memory()
    assert free is None or free > 2**20


@pytest.mark.parametrize("worlds", [10**9, 10**12, 10**18])
@pytest.mark.parametrize("backend", ["host", "jax"])
def test_worlds_beyond_all_memory_are_refused_at_once(backend: str, worlds: int) -> None:
    Simulation("ant", 1, backend=backend).close()  # compiled
    began = time.perf_counter()
    expected = rf"{worlds} worlds of model 'ant' take at least .* {backend} backend has .* GiB free; use fewer worlds"
    with pytest.raises(BackendError, match=expected):
        Simulation("ant", worlds, backend=backend)
    with Simulation("ant", 1, backend=backend) as sim, pytest.raises(BackendError, match="use fewer worlds"):
        sim.add_group("ant", worlds)
    assert time.perf_counter() - began < 5
