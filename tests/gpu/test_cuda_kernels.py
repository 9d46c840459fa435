"""Kernels of single stages on the GPU against the host, and fused kernels against the single stages, bit for bit."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import pytest

from simengine.backends.base import LANE_CLASSES, lanes_for
from simengine.kernels.kernel import Kernel
from simengine.physics.stage import Stage
from simengine.plan import catalogue
from simengine.plan.stages import RK4, STAGES
from simengine.state.fields import FIELD, WORLD_ARENAS
from tests.gpu.cases import NAMES, loaded
from tests.gpu.compare import CUDA, TOLERANCE, both, cuda_only, kind
from tests.gpu.launcher import resident
from tests.gpu.memories import owners, prepared, start, widened
from tests.stages.harness import FRONT, Memory, arguments, call, changed, list_worlds, near_list
from tests.stages.harness_chain import calls, fused_calls, most_rows, serves

CASES = [(stage, 0) for stage in STAGES] + [(RK4, k) for k in (1, 2, 3)]
ON_HOST = ("heap",)
"""The model that runs on the host too, where the stages have tests of their own."""

INTEGRATIONS = [("", 0), ("euler", 0), ("rk4", 0), ("rk4", 3)]

dtypes = pytest.mark.parametrize("dtype", ["float64", "float32"])
names = pytest.mark.parametrize("name", NAMES)
ON_MODELS = [(name, *stage_case) for name in NAMES for stage_case in CASES if serves(stage_case[0], loaded(name)[1])]
"""Models and the stages that they have a use for."""

stages_on_models = pytest.mark.parametrize(
    ("name", "stage", "rk_stage"), ON_MODELS, ids=[f"{name}-{stage.name}{k or ''}" for name, stage, k in ON_MODELS]
)


def on_either(chosen: list[tuple[Any, ...]]) -> list[Any]:
    """Cases of a precision, a backend, a model and what `chosen` has besides, for models that begin its entries.

    On the host, where stages and fused kernels have tests of their own, these are in the second stage.
    """
    cases = []
    for dtype in ("float64", "float32"):
        places = (("host", [pytest.mark.slow], ON_HOST), (*CUDA.values, list(CUDA.marks), NAMES))
        for backend, marks, names_there in places:
            cases += [pytest.param(dtype, backend, *c, marks=marks) for c in chosen if c[0] in names_there]
    return cases


def case_id(value: Any) -> str:
    """The part of a test's name that a value of a case makes."""
    return value.name if isinstance(value, Stage) else str(value)


on_both = pytest.mark.parametrize(("dtype", "backend", "name", "stage", "rk_stage"), on_either(ON_MODELS), ids=case_id)
chains_on_both = pytest.mark.parametrize(
    ("dtype", "backend", "name"), on_either([(name,) for name in NAMES]), ids=case_id
)

WORKING = ("solver_niter", "efc_jar", "efc_jv", "efc_before", "efc_order", "efc_weight")
"""Outputs that say how the solver got there."""


PAIRS = ("near_cand", "near_adr", "search_near", "search_found", "kept_contact", "pair_tally")
"""Outputs that list pairs whose bounds overlap. The host tests boxes along the axes, too, and lists no more pairs."""


def contacts_of_pairs(memory: Memory) -> list[dict[int, int]]:
    """The number of contacts of each candidate pair that is listed, for each world."""
    lists = (near_list(memory, name).astype(int) for name in ("near_cand", "near_adr"))
    tables = zip(*lists, memory.own("pair_tally"), strict=True)
    return [
        dict(zip(cand[: tally[0]].tolist(), np.diff(adr[: tally[0] + 1]).tolist(), strict=True))
        for cand, adr, tally in tables
    ]


def lists_the_same_contacts(actual: Memory, expected: Memory) -> bool:
    """Whether pairs of the host are listed, with as many contacts, and all others have none."""
    pairs = zip(contacts_of_pairs(actual), contacts_of_pairs(expected), strict=True)
    return all(ours == dict.fromkeys(ours, 0) | theirs for ours, theirs in pairs)


def errors(actual: Memory, expected: Memory, written: dict[str, np.ndarray], dtype: str) -> dict[str, float]:
    """Errors beyond the tolerance in the words that were written, relative to the largest number of their world."""
    wrong = {}
    for name, words in written.items():
        ours, theirs = actual.arrays[name], expected.arrays[name]
        if FIELD[name].kind == "int":
            if (ours != theirs)[words].any():
                wrong[name] = float((ours != theirs)[words].sum())
            continue
        own = slice(FRONT, FRONT + actual.num_worlds) if FIELD[name].space == "world" else slice(len(actual.own(name)))
        care = words[own]
        size = np.where(care, np.abs(theirs[own]), 0.0).reshape(len(care), -1).max(axis=1, initial=0.0)
        difference = np.where(care, np.abs(ours[own].astype(np.float64) - theirs[own]), 0.0)
        world = owners(expected, name)
        scale, worst = np.ones(actual.num_worlds), np.zeros(actual.num_worlds)
        np.maximum.at(scale, world, size)
        np.maximum.at(worst, world, difference.reshape(len(care), -1).max(axis=1, initial=0.0))
        error = (worst / scale).max()
        if not error <= TOLERANCE[kind(name)][dtype]:
            wrong[name] = float(error)
    return wrong


@on_both
def test_a_stage_alone_agrees_with_the_host_build(
    backend: str, name: str, dtype: str, stage: Stage, rk_stage: int
) -> None:
    """The same inputs in double precision on the host: the same words are written, with the same values."""
    kernel, memory = catalogue.single(stage), prepared(name, dtype)
    rows = most_rows(memory)
    memory.poison(stage.writes)
    if "actuator_moment" in stage.writes:  # entries that are not in the model table are zero from the start on a GPU
        memory.arrays["actuator_moment"].fill(0)
    before, host = memory.snapshot(), widened(memory)
    host_before = host.snapshot()
    call(kernel, host, arguments(kernel, host, False, rows, {"rk_stage": rk_stage}))
    away = resident(memory, backend)
    away.call(kernel, arguments(kernel, memory, False, rows, {"rk_stage": rk_stage}), worlds_a_block=4)
    away.fetch()
    other_pairs = "near_cand" in stage.writes and contacts_of_pairs(memory) != contacts_of_pairs(host)
    assert not other_pairs or lists_the_same_contacts(memory, host)
    written = {}
    for field, old in before.items():
        if other_pairs and field in PAIRS:
            continue
        words = changed(old, memory.arrays[field])
        if field in stage.writes:
            theirs = changed(host_before[field], host.arrays[field])
            assert (words == theirs).all(), f"{stage.name} writes {(words != theirs).sum()} other words of {field}"
        elif field not in stage.updates:
            assert not words.any(), f"{field} is not an output of {stage.name}"
            continue
        if field not in WORKING:
            written[field] = np.ones(words.shape, bool) if field in stage.updates else words
    assert errors(memory, host, written, dtype) == {}


@cuda_only
@stages_on_models
@dtypes
def test_a_world_does_not_know_its_block(backend: str, name: str, dtype: str, stage: Stage, rk_stage: int) -> None:
    """One world a block, two, as many as fit, and every second world of a list: the same bits."""
    kernel, outputs = catalogue.single(stage), (*stage.writes, *stage.updates)
    memory = prepared(name, dtype)
    slots = arguments(kernel, memory, False, most_rows(memory), {"rk_stage": rk_stage})
    shots = []
    for worlds in (1, 2, 128):
        away = resident(memory.copy(), backend)
        away.call(kernel, slots, worlds)
        away.fetch()
        shots.append(away.memory)
    for other in shots[1:]:
        assert [f for f in FIELD if changed(shots[0].arrays[f], other.arrays[f]).any()] == []
    if kernel.unit == "column" or any(FIELD[f].space in (*WORLD_ARENAS, "column") for f in outputs):
        return
    some = np.arange(memory.num_worlds, dtype=np.int32)[::2]
    list_worlds(memory, some)
    before = memory.snapshot()
    away = resident(memory, backend)
    away.call(kernel, arguments(kernel, memory, True, most_rows(memory), {"rk_stage": rk_stage}), 2)
    away.fetch()
    for field in outputs:
        assert not changed(memory.own(field), shots[0].own(field))[some].any(), field
        others = np.delete(np.arange(len(before[field])), FRONT + some)
        assert not changed(memory.arrays[field], before[field])[others].any(), f"{field} of worlds that did not run"


@lru_cache(maxsize=1)
def unfused(backend: str, name: str, dtype: str, integrator: str, rk_stage: int) -> dict[str, np.ndarray]:
    """Every buffer after the chain of single-stage kernels."""
    away = resident(start(name, dtype, rk_stage), backend)
    away.run(calls(away.memory, integrator, rk_stage))
    away.fetch()
    return away.memory.snapshot()


def left_out(kernels: tuple[Kernel, ...]) -> dict[str, frozenset[str]]:
    """For each kernel the outputs that no other kernel reads and that it may therefore keep to itself."""
    needed = {n for k in kernels for n in (*k.reads, *k.updates, *k.addresses)}
    return {k.name: frozenset(n for n in k.in_scratch if n not in needed) for k in kernels}


@pytest.mark.parametrize("stored", ["everything", "what is read"])
@pytest.mark.parametrize("arena", [False, True], ids=["rows in scratch", "rows in the arena"])
@pytest.mark.parametrize(("integrator", "rk_stage"), INTEGRATIONS)
@chains_on_both
def test_fused_and_unfused_kernels_give_the_same_bits(
    backend: str, name: str, dtype: str, integrator: str, rk_stage: int, arena: bool, stored: str
) -> None:
    """Wherever the rows live, and whatever reaches memory."""
    solver = loaded(name)[1].solver
    unused = catalogue.finish(integrator, solver, not arena)
    kernels = tuple(k for k in catalogue.step_kernels(integrator, solver) if k != unused)
    null = left_out(kernels) if stored == "what is read" else {k.name: frozenset[str]() for k in kernels}
    missing = {n for names in null.values() for n in names}
    away = resident(start(name, dtype, rk_stage), backend)
    away.run(fused_calls(away.memory, integrator, rk_stage, arena, null))
    away.fetch()
    wanted = unfused(backend, name, dtype, integrator, rk_stage)
    differing = [f for f in FIELD if f not in missing and changed(wanted[f], away.memory.arrays[f]).any()]
    assert differing == []
    assert all(np.isfinite(away.memory.own(f)).all() for f in {"qpos", "qvel", "qacc"} - missing)
    assert (away.memory.own("world_status") == 0).all()


def test_the_models_need_every_number_of_lanes() -> None:
    sizes = [loaded(name)[1].nv for name in NAMES]
    assert {lanes_for(nv) for nv in sizes} == set(LANE_CLASSES)
    assert max(sizes) > LANE_CLASSES[-1]


@both
def test_writing_beside_a_buffer_is_seen(backend: str) -> None:
    """Otherwise the tests above would not see it."""
    away = resident(prepared("two_arms", "float32"), backend)
    away.fetch()
    away.block[1] = 0
    with pytest.raises(AssertionError, match="1 bytes beside the buffers were written, near"):
        away.fetch()
