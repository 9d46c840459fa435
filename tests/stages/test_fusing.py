"""Fused kernels against the chain of single stages, bit for bit, for all stored outputs and both memories of rows."""

from __future__ import annotations

from functools import lru_cache
from itertools import product

import mujoco
import numpy as np
import pytest

from simengine.kernels.kernel import Kernel
from simengine.plan import catalogue, contact_kernels, smooth_kernels
from simengine.plan.stages import INTEGRATORS, SOLVERS
from simengine.state.fields import FIELD, NUM_COLUMNS, SENSED, WORLD_STATUS
from tests.stages.harness import FRONT, Memory, arguments, call, changed, list_worlds
from tests.stages.harness_chain import MODELS, fused_calls, most_rows, run_chain, single, start, worlds_of

Shot = dict[str, np.ndarray]
POSTS = (catalogue.POST, catalogue.POST_GENERAL, catalogue.TENDON_POST)
STORED = ("everything", "odd", "even", "nothing")


@lru_cache(maxsize=1)
def unfused(name: str, dtype: str, integrator: str, rk_stage: int) -> Shot:
    """Every buffer after the chain of single-stage kernels."""
    memory = start(name, dtype, rk_stage)
    run_chain(memory, integrator, rk_stage)
    return memory.snapshot()


def dropped(kernels: tuple[Kernel, ...], stored: str) -> dict[str, frozenset[str]]:
    """For each kernel the optional outputs that are left out; what a later kernel reads is always stored."""
    needed = {n for k in kernels for n in (*k.reads, *k.updates, *k.addresses)}
    out = {}
    for kernel in kernels:
        optional = [n for n in kernel.in_scratch if n not in needed]
        choice = {"everything": [], "odd": optional[1::2], "even": optional[::2], "nothing": optional}
        out[kernel.name] = frozenset(choice[stored])
    return out


def run_fused(memory: Memory, integrator: str, rk_stage: int, arena: bool, stored: str) -> set[str]:
    """Carry out the step's fused kernels; returns the fields that were not stored."""
    solver = memory.model.solver
    sensing = (catalogue.SENSE_MOTION, catalogue.SENSE_DISTANCE, catalogue.SENSE_FORCES)
    post = catalogue.post(memory.model.has_general_rows)
    three = smooth_kernels.smooth_in_three
    simple = (*three(False, False, False), *three(False, True, False)[1:2])
    driven = (
        catalogue.TENDONS_BY_BLOCK,
        catalogue.ACTUATORS_BY_BLOCK,
        catalogue.SMOOTH_DRIVEN,
        catalogue.FORCES_DRIVEN,
    )
    apart = (*simple, *three(True, False, False)[:2], *driven)
    others = (*catalogue.ON_DEMAND, *POSTS, *sensing, *apart)
    kernels = [k for k in catalogue.step_kernels(integrator, solver) if k not in others]
    kernels.remove(catalogue.finish(integrator, solver, not arena))
    # kernels for sensors, and parts of the smooth motion, read so much that little would be left to leave out
    noslip = (catalogue.NOSLIP_KERNEL,) if memory.model.opt_noslip_iterations else ()
    after = (*noslip, post, catalogue.TENDON_POST, *((*sensing, *apart) if stored == "everything" else ()))
    null = dropped((*kernels, *catalogue.ON_DEMAND, *after), stored)
    for kernel, slots in fused_calls(memory, integrator, rk_stage, arena, null):
        call(kernel, memory, slots)
    missing = {n for names in null.values() for n in names}
    return missing if stored == "everything" else missing | SENSED


@pytest.mark.parametrize("stored", STORED)
@pytest.mark.parametrize("arena", [False, True], ids=["rows in scratch", "rows in the arena"])
@pytest.mark.parametrize(("integrator", "rk_stage"), [("", 0), ("euler", 0), ("rk4", 3)])
@pytest.mark.parametrize("dtype", ["float32"])
@pytest.mark.parametrize("name", MODELS)
def test_fused_and_unfused_give_the_same_bits(
    name: str, dtype: str, integrator: str, rk_stage: int, arena: bool, stored: str
) -> None:
    memory = start(name, dtype, rk_stage)
    untouched = memory.snapshot()
    missing = run_fused(memory, integrator, rk_stage, arena, stored)
    assert not memory.broken_guards()
    wanted = unfused(name, dtype, integrator, rk_stage)
    for field in FIELD:
        expected = wanted[field]
        if field in missing:
            # stored for some worlds at most: those whose kernel keeps the field in memory anyway
            partly = changed(untouched[field], memory.arrays[field])
            assert not changed(expected, memory.arrays[field])[partly].any(), field
            continue
        assert not changed(expected, memory.arrays[field]).any(), f"{field} differs between fused and unfused kernels"


@pytest.mark.slow
@pytest.mark.parametrize("integrator", ["", *INTEGRATORS])
@pytest.mark.parametrize("solver", SOLVERS)
def test_every_kernel_of_a_step_is_compared(integrator: str, solver: str) -> None:
    """Of the kernels of a step with the common solver all, with another those that differ."""
    ran = set()
    lean = ("ant", "swimmer", "sunken", "actuators")
    names = {
        "solve_newton_unilateral": lean,
        "solve_newton_general": ("linkage",),
        "solve_cg": ("rollers",),
        "solve_pgs": ("dual",),
    }[solver]
    null = dropped(catalogue.step_kernels(integrator, solver), "everything")
    for name, arena in product(names, (False, True)):
        memory = start(name, "float64", 0)
        for kernel, slots in fused_calls(memory, integrator, 0, arena, null):
            call(kernel, memory, slots)
            ran.add(kernel.name)
    common = {k.name for k in catalogue.step_kernels(integrator)}
    wanted = {k.name for k in catalogue.step_kernels(integrator, solver)}
    wanted |= {catalogue.NOSLIP_KERNEL.name} if solver == "solve_newton_general" else set()
    elsewhere = {k.name for k in (catalogue.POST_GENERAL, *contact_kernels.SEARCHES, *contact_kernels.PRISM_KERNELS)}
    assert ran <= wanted  # the others run in test_kept_contacts.py and test_prisms_on_gpu.py
    assert ran >= wanted - common if solver != "solve_newton_unilateral" else ran == wanted - elsewhere


@pytest.mark.parametrize("integrator", ["euler", "rk4"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_world_that_fails_is_flagged_and_leaves_the_others_alone(dtype: str, integrator: str) -> None:
    """Bad inputs freeze their world: no contacts, no rows, its state as it was; other worlds keep their bits."""
    inputs = ("qpos", "qvel", "ctrl", "qfrc_applied", "xfrc_applied")
    good, bad = start("ant", dtype, 0), start("ant", dtype, 0)
    for world, field in enumerate(inputs):
        bad.own(field)[world].flat[-1] = np.inf if world % 2 else np.nan
    bad.own("world_status")[len(inputs)] = WORLD_STATUS.index("solve")
    frozen = np.arange(len(inputs) + 1)
    before = bad.snapshot()
    run_chain(good, integrator)
    call(catalogue.POSITION, bad, arguments(catalogue.POSITION, bad))
    assert (bad.own("world_status")[frozen] == [*[WORLD_STATUS.index("input")] * 5, WORLD_STATUS.index("solve")]).all()
    for count in ("ncon", "nefc"):
        assert (bad.own(count)[frozen] == 0).all()
    call(contact_kernels.SCAN_KERNEL, bad, arguments(contact_kernels.SCAN_KERNEL, bad))
    lists = bad.own("lists").reshape(-1, bad.num_worlds)
    totals, expected = (memory.own("totals").ravel()[:NUM_COLUMNS] for memory in (bad, good))
    assert totals[-1] == len(frozen)
    assert (lists[-1, : len(frozen)] == FRONT + frozen).all()
    assert totals[2:-1].sum() == expected[2:-1].sum() - _entries(good, frozen)
    call(catalogue.SMOOTH, bad, arguments(catalogue.SMOOTH, bad))
    for kernel in contact_kernels.NARROW.values():
        call(kernel, bad, arguments(kernel, bad))
    healthy = np.setdiff1d(np.arange(bad.num_worlds), frozen)
    for kernel, kind in (
        (catalogue.finish(integrator, "solve_newton_unilateral", False), "rows"),
        (catalogue.advance(integrator, "solve_newton_unilateral"), "free"),
    ):
        list_worlds(bad, np.intersect1d(worlds_of(bad, kind), healthy).astype(np.int32))
        call(kernel, bad, arguments(kernel, bad, True, most_rows(bad), {"rk_stage": 0}))
    for field in ("qpos", "qvel", "qacc_warmstart", "nstep", "world_status", "qacc"):
        assert not changed(bad.own(field), good.own(field))[healthy].any(), field
        old = before[field][FRONT : FRONT + bad.num_worlds] if field != "world_status" else bad.own(field)
        assert not changed(bad.own(field), old)[frozen].any(), field


def _entries(memory: Memory, worlds: np.ndarray) -> int:
    """How often some worlds stand in the lists of pair types and size classes."""
    counts = memory.own("counts").reshape(-1, memory.num_worlds)
    return int(counts[2:-1, worlds].sum())


@pytest.mark.parametrize(("integrator", "rk_stage"), [("euler", 0), *(("rk4", k) for k in range(4))])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("culprit", ["qacc_smooth", "qacc", "too fast"])
def test_integrators_name_what_went_wrong(dtype: str, culprit: str, integrator: str, rk_stage: int) -> None:
    """A world with a bad acceleration keeps the state of the step's start and is flagged with the stage that did it."""
    memory = start("ant", dtype, 1)
    run_chain(memory)
    world = 4
    if culprit == "too fast":
        largest = 0.9999 * mujoco.mjMAXVAL
        for field in ("qacc", "qvel", "rk_qvel"):
            memory.own(field)[world] = largest
        for field in ("qpos", "rk_qpos"):
            memory.own(field)[world, 0] = largest
    else:
        memory.own(culprit)[world, 2] = np.nan
    kernel = single(integrator)
    first = {n: memory.own(n)[world].copy() for n in ("qpos", "qvel", "rk_qpos", "rk_qvel")}
    call(kernel, memory, arguments(kernel, memory, scalars={"rk_stage": rk_stage}))
    code = {"qacc_smooth": "acceleration", "qacc": "solve", "too fast": "integrate"}[culprit]
    assert memory.own("world_status")[world] == WORLD_STATUS.index(code)
    kept = ("rk_qpos", "rk_qvel") if rk_stage else ("qpos", "qvel")
    for field, source in zip(("qpos", "qvel"), kept, strict=True):
        np.testing.assert_array_equal(memory.own(field)[world], first[source])
    others = np.delete(memory.own("world_status"), world)
    assert (others == WORLD_STATUS.index("healthy")).all()
