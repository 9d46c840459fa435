"""Every kernel with lanes as threads under ThreadSanitizer, and under the address and undefined-behaviour sanitizers.

With one lane a missing `lane_sync` and a private variable that should be shared go unseen. Here four threads share a
world; the results must be those of one lane, bit for bit wherever no sum over lanes has another order.
"""

from __future__ import annotations

from itertools import chain, product
from pathlib import Path

import numpy as np
import pytest

from simengine.model import load_table
from simengine.plan import catalogue, contact_kernels, smooth_kernels
from simengine.plan.every_kernel import all_kernels
from simengine.plan.islands import ISLAND_KERNELS
from simengine.state.fields import FIELD
from tests.helpers.islands import counting, dropped, filled
from tests.models import OWN
from tests.stages.harness import Memory, arguments, call, changed
from tests.stages.harness_chain import RUNGE_KUTTA, Calls, calls, fused_calls, single, start
from tests.stages.harness_sanitizer import build, execute, record, supported
from tests.stages.units import Edit

pytestmark = [pytest.mark.sanitizer]

_OF_ROOMS = (*catalogue.POSES_OF_MANY, contact_kernels.LISTING_BY_CLUSTERS, contact_kernels.CLUSTERS_BY_BLOCK)
IN_PARTS = (catalogue.POSES_IN_PARTS, catalogue.MANY_IN_PARTS, catalogue.POSITION_IN_PARTS)
_OWN_MODELS = (*ISLAND_KERNELS, *_OF_ROOMS)
KERNELS = [kernel for kernel in all_kernels() if kernel not in _OWN_MODELS]
"""What solves worlds island by island, or is for rooms of many geoms, is run on its own models; see
test_island_sanitizers.py and test_clusters.py."""

WORLDS = {"ant": 4, "pile": 2, "swimmer": 3, "tendons": 3, "actuators": 3, "dual": 2, "linkage": 2, "rollers": 2} | {
    "ropes": 2,
    "glider": 2,
}
FORMS = ("single", "scratch", "arena")
OF_LARGE_MODELS = (
    *(catalogue.POSES_SITES, catalogue.TENDONS_BY_BLOCK),
    *(contact_kernels.COUNTING_BY_WARP, contact_kernels.COUNTING_IN_EIGHT),
    *(catalogue.ACTUATORS_BY_BLOCK, catalogue.SMOOTH_DRIVEN, catalogue.FORCES_DRIVEN),
    *(smooth_kernels.INERTIA_BY_BLOCK, smooth_kernels.FORCES_BESIDE),
)
"""Kernels that take the place of others where a GPU has many tendons, actuators or pairs to work on."""

STEPS = [
    *(("ant", step) for step in ("", "euler", "rk4")),
    *(("pile", "euler"), ("swimmer", "rk4"), ("tendons", "rk4"), ("actuators", "rk4")),
    *(("dual", "euler"), ("linkage", "rk4"), ("rollers", "euler"), ("ropes", "euler_general")),
    *(("glider", step) for step in ("implicit", "implicitfast")),
]
"""Models, and integrators to step them with; without one, an evaluation."""
_SPREAD = (contact_kernels.DISTANCE_IN_EIGHT, contact_kernels.DEPTH_BY_WARP, contact_kernels.TOUCH_IN_EIGHT)
SEARCHES = (
    *contact_kernels.SEARCHES,
    *(contact_kernels.LIST_BY_BLOCK, *_SPREAD, contact_kernels.SEARCHES[4]),
    *(contact_kernels.LIST_NEAR, contact_kernels.COUNT_NEAR, *contact_kernels.SEARCHES[1:3]),
    *(*contact_kernels.TOUCHES_OF_MANY, contact_kernels.SEARCHES[4]),
)
"""The kernels that search for contacts, those of small shards, and those of large ones on a GPU."""
_TOUCHES = (contact_kernels.PRISMS[3], contact_kernels.PRISM_TOUCH_IN_EIGHT, *contact_kernels.PRISM_TOUCHES_OF_MANY)
PRISMS = (
    *(contact_kernels.SEARCHES[0], *contact_kernels.PRISMS[:2], contact_kernels.PRISM_DEPTH_BY_WARP),
    *(kernel for touch in _TOUCHES for kernel in (*contact_kernels.PRISMS[:3], touch)),
    *(contact_kernels.PRISMS[4], contact_kernels.SEARCHES[4], contact_kernels.STORE_PRISMS),
)
"""The same for prisms of height fields."""

SUMMED = (
    *("qacc", "efc_force", "efc_jar", "qfrc_constraint", "cfrc_ext", "qpos", "qvel", "qacc_warmstart"),
    *(*RUNGE_KUTTA, "cacc", "cfrc_int", "sensordata", "efc_b", "efc_Y", "efc_diagAR"),
)
"""Fields that depend on the solver's sums over lanes, whose order is another with more lanes. Sweeps without slip have
`efc_b` of the solver's `qacc`. PGS of a single lane has vectors of rows, which it whitens in another order."""

UNCOMPARED = ("solver_niter", "efc_jv", "efc_before", "efc_weight", "listed", "num_listed")
"""How the solver got there may differ in the last iteration, and its working fields; lists of worlds are inputs."""

PLAIN = "none, four lanes"
KINDS = {
    PLAIN: ("float64", 4, ()),
    "threads": ("float64", 4, ("-fsanitize=thread",)),
    "memory, four lanes": ("float32", 4, ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-O0")),
}


@pytest.fixture(scope="module", params=KINDS)
def build_of(request: pytest.FixtureRequest) -> tuple[Path, str, bool]:
    """The runner of all kernels for one kind of sanitizer, its precision, and whether bits are compared."""
    dtype, lanes, flags = KINDS[request.param]
    require(flags)
    return build(KERNELS, dtype, lanes, flags), dtype, request.param == PLAIN


def require(flags: tuple[str, ...]) -> None:
    """Skip where the compiler lacks a sanitizer."""
    for flag in flags[:1]:
        if not supported(flag):
            pytest.skip(f"this compiler or machine lacks {flag}")


def programs(name: str, dtype: str, integrator: str, form: str) -> tuple[Memory, Calls]:
    """A small memory and the calls of a step on it: single stages, or fused with rows in scratch or in the arena."""
    memory = start(name, dtype, 0, WORLDS[name])
    # these take the place of kernels of a step: some work on what it has left, and those in parts, whose results the
    # step finds again, before it, since positions after it depend on the solver's sums over lanes
    halves = () if memory.model.general_position else (catalogue.POSITION_IN_SIXTEEN,)
    parts = [k for of in IN_PARTS for k in (of if memory.model.general_position else of[:1])]
    damped = (catalogue.DIAGONAL_KERNEL,) if integrator == "euler" and memory.model.damps_single_dofs else ()
    before, again = (((kernel, arguments(kernel, memory)) for kernel in of) for of in (parts, (*halves, *damped)))
    if form == "single":
        return memory, chain(before, calls(memory, integrator, 0), again)
    nothing = {kernel.name: frozenset[str]() for kernel in KERNELS}
    fused = chain(before, fused_calls(memory, integrator, 0, form == "arena", nothing), again)
    if form == "arena" or not memory.model.general_smooth or memory.model.has_adhesion:
        return memory, fused
    return memory, chain(fused, ((kernel, arguments(kernel, memory)) for kernel in OF_LARGE_MODELS))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("name", "integrator"), STEPS)
def test_no_reports_and_the_same_results(
    build_of: tuple[Path, str, bool], name: str, integrator: str, form: str
) -> None:
    program, dtype, exact = build_of
    memory, todo = programs(name, dtype, integrator, form)
    buffers, recorded = record(memory, todo)
    assert memory.own("nefc").max() > 0
    result = execute(program, KERNELS, buffers, recorded)
    assert not result.reports, result.reports[:3000]
    assert result.status == 0
    for field in FIELD:
        ours, theirs = result.buffers[field], memory.arrays[field]
        if field in UNCOMPARED:
            continue
        if FIELD[field].kind == "int" or (exact and field not in SUMMED):
            # a single lane leaves zeros where no dof moves a contact, where others compute zeros of either sign
            assert not changed(ours + 0, theirs + 0).any(), f"{field} depends on the number of lanes"
        else:
            # sanitizers call sin and cos where the engine's builds call sincos, which rounds differently
            relative = {"float64": 1e-9, "float32": 2e-3 if field in SUMMED else 1e-5}[dtype]
            scale = max(1.0, float(np.nanmax(np.abs(theirs), initial=0.0)))
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=relative * scale, err_msg=field)


@pytest.mark.parametrize(("name", "pair_type"), [("terrain", "hfield"), ("rubble", "convex")])
def test_lanes_share_the_prisms_of_height_fields_and_the_search_of_overlapping_meshes(
    build_of: tuple[Path, str, bool], name: str, pair_type: str
) -> None:
    program, dtype, exact = build_of
    model, states = load_table(OWN[name]), dropped(OWN[name], (50, 200))
    narrow = contact_kernels.NARROW[pair_type]
    counted = filled(Memory(model, dtype, 2, 0, 0), states)
    for kernel, slots in counting(counted):
        call(kernel, counted, slots)
    memory = filled(Memory(model, dtype, 2, int(counted.own("ncon").sum()), 0), states)
    kernels = (*(SEARCHES if model.nsearch else ()), *(PRISMS if model.nprism else ()))
    searches = [(kernel, arguments(kernel, memory, scalars={"parts": 2})) for kernel in kernels]
    todo = (*counting(memory), *searches, (narrow, arguments(narrow, memory)))
    for stale in ("near_cand", "near_adr", "search_near", "search_found", "search_state"):
        memory.own(stale).fill(77)  # what an earlier step left behind the ends of its lists
    buffers, recorded = record(memory, iter(todo))
    assert memory.own("ncon").min() > 2
    result = execute(program, KERNELS, buffers, recorded)
    assert not result.reports, result.reports[:3000]
    assert result.status == 0
    assert {item.kernel for item in recorded} >= {k.name for k in (SEARCHES if pair_type == "convex" else PRISMS)}
    for field in ("near_cand", "near_adr", "nefc", "contact_cand"):
        np.testing.assert_array_equal(result.buffers[field], memory.arrays[field], err_msg=field)
    for field in ("contact_dist", "contact_pos", "contact_frame"):
        atol = 0 if exact else 1e-5  # sanitizers call other functions of the library, which round differently
        np.testing.assert_allclose(result.buffers[field], memory.arrays[field], rtol=0, atol=atol, err_msg=field)


def test_every_kernel_is_run() -> None:
    ran = {kernel.name for kernel in (*SEARCHES, *PRISMS)}  # by the test of lanes that share searches
    for (name, integrator), form in product(STEPS, FORMS):
        _, recorded = record(*programs(name, "float64", integrator, form))
        ran |= {item.kernel for item in recorded}
    assert ran == {kernel.name for kernel in KERNELS}


def without(line: str, after: str) -> Edit:
    """Leave out the first `line` that follows the text `after`."""

    def edit(source: str) -> str:
        at = source.index(line, source.index(after))
        return source[:at] + source[at + len(line) :]

    return edit


SEEDED = {
    "a lane_sync of kinematics is missing": (
        "kinematics",
        without("lane_sync();", "kinematics_body(m, m.level_body()"),
    ),
    "a lane_sync of the solver is missing": (
        "solve_newton_unilateral",
        without("lane_sync();", "LANE_FOR(r, n) efc_force[r]"),
    ),
    "a lane_sync of the factor is missing": ("factor_m", without("lane_sync();", "DEVICE void factor_by_dots")),
}


@pytest.mark.parametrize("fault", SEEDED)
def test_a_planted_race_is_reported(fault: str) -> None:
    require(KINDS["threads"][2])
    name, edit = SEEDED[fault]
    memory, todo = programs("ant", "float64", "", "single")
    buffers, recorded = record(memory, todo)
    # the faulty stage starts from the fields of the stages before it
    fields = {k: v for k, v in memory.snapshot().items() if k in FIELD}
    only = [item for item in recorded if item.kernel == f"only_{name}"]
    program = build([single(name)], "float64", 4, ("-fsanitize=thread",), edit)
    result = execute(program, [single(name)], buffers | fields, only)
    assert "ThreadSanitizer: data race" in result.reports


def test_a_planted_overrun_is_reported() -> None:
    flags = KINDS["memory, four lanes"][2]
    require(flags)

    def edit(source: str) -> str:
        good = "LANE_FOR(e, nv * nv) qM[e] = 0;"
        assert good in source
        return source.replace(good, "LANE_FOR(e, 9 * nv * nv) qM[e] = 0;")

    memory, todo = programs("ant", "float64", "", "single")
    buffers, recorded = record(memory, todo)
    program = build([single("crb")], "float64", 4, flags, edit)
    result = execute(program, [single("crb")], buffers, [c for c in recorded if c.kernel == "only_crb"])
    assert "heap-buffer-overflow" in result.reports
