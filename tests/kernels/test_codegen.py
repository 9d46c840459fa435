"""Kernels from bodies: parameters, scratch plans and sources."""

from __future__ import annotations

import re
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simengine.kernels.cuda_codegen import kernel_source
from simengine.kernels.host_codegen import host_source
from simengine.kernels.kernel import Kernel, factor_words
from simengine.kernels.signatures import body_signature, parameters
from simengine.kernels.sources import stage_sources
from simengine.model.clusters import bit_words
from simengine.model.table import SIZES
from simengine.physics.collision.broadphase.broadphase import PAIR_STAGES
from simengine.physics.collision.prisms.prisms import PRISM_STAGES
from simengine.physics.stage import Stage
from simengine.plan import islands as island_kernels
from simengine.plan.catalogue import SMOOTH, finish, single, step_kernels
from simengine.plan.contact_kernels import SEARCHES
from simengine.plan.every_kernel import all_kernels
from simengine.plan.large_islands import for_large
from simengine.plan.stages import INTEGRATORS, SOLVERS, STAGES
from simengine.plan.tiles import COUNTING_KERNELS, REST_KERNELS, TILED_KERNELS
from simengine.plan.variants import with_branches
from simengine.state.fields import FIELD, FIELDS, ROW_SPACES, entry_shape

ALL = (*all_kernels(), *TILED_KERNELS, *COUNTING_KERNELS, *REST_KERNELS)
every_kernel = pytest.mark.parametrize("kernel", ALL, ids=lambda k: k.name)

sizes = st.fixed_dictionaries({name: st.integers(0, 40) for name in SIZES}).map(
    lambda drawn: {**drawn, "nstill": min(drawn["nstill"], drawn["ncluster"])}
)
chains = st.lists(st.sampled_from([s for s in STAGES if s.name != "scan"]), min_size=1, max_size=6, unique=True)


def lengths(kernel: Kernel, model: dict[str, int], nrow: int, registers: bool) -> dict[str, int]:
    """Words that each scratch item needs at least."""
    extra = {**model, "nvp": -(-model["nv"] // 4) * 4, "nhessian": 0 if registers else model["nv"] ** 2, "npull": 0}
    extra |= {"nbounds": 4 * model["ngeom"], "nbranches": 0, "nfactor": factor_words(model)}
    extra |= {"nboxes": 6 * (model["ncluster"] - model["nstill"]), "nbits": bit_words(model["ncand"])}
    words = {}
    for name in (*(n for n in kernel.reads if n in kernel.preload), *kernel.in_scratch):
        shape = entry_shape(FIELD[name], model)
        words[name] = int(np.prod(shape, dtype=int)) * (nrow if FIELD[name].space in ROW_SPACES else 1)
    for stage in kernel.stages:
        own = ((name, dims) for name, dims in stage.scratch if f"island_{name}" not in kernel.island_scratch)
        for name, dims in own:
            words[f"{stage.name}_{name}"] = int(np.prod([extra.get(d, d) for d in dims], dtype=int))
    return words


def check_plan(kernel: Kernel, model: dict[str, int], nrow: int, registers: bool) -> None:
    """Items lie inside the scratch, on multiples of four words, and apart from those alive at the same time."""
    plan = kernel.plan_scratch(model, nrow, registers)
    words = lengths(kernel, model, nrow, registers)
    items = kernel.scratch_items
    in_place = {frozenset(pair) for stage in kernel.stages for pair in stage.in_place}
    assert set(plan.offsets) == {item.name for item in items} == set(words)
    for i, item in enumerate(items):
        start, end = plan.offsets[item.name], plan.offsets[item.name] + words[item.name]
        assert start % 4 == 0
        assert 0 <= start <= end <= plan.words
        for other in items[:i]:
            handed_over = frozenset((item.name, other.name)) in in_place and max(item.first, other.first) == min(
                item.last, other.last
            )
            other_start = plan.offsets[other.name]
            if handed_over and other_start == start and words[other.name] == words[item.name]:
                continue  # word for word in place
            if item.first <= other.last and other.first <= item.last:
                assert end <= other_start or other_start + words[other.name] <= start, f"{item} overlaps {other}"


@given(model=sizes, nrow=st.integers(0, 200), registers=st.booleans(), data=st.data())
def test_scratch_of_every_kernel_fits_and_does_not_overlap(
    model: dict[str, int], nrow: int, registers: bool, data: st.DataObject
) -> None:
    check_plan(data.draw(st.sampled_from(ALL)), model, nrow, registers)


@given(model=sizes, nrow=st.integers(0, 200), stages=chains, data=st.data())
def test_scratch_of_any_fusion_fits_and_does_not_overlap(
    model: dict[str, int], nrow: int, stages: list[Stage], data: st.DataObject
) -> None:
    produced = sorted({name for stage in stages for name in stage.writes})
    direct = data.draw(st.frozensets(st.sampled_from(produced))) if produced else frozenset()
    check_plan(Kernel("any", tuple(stages), direct=direct), model, nrow, False)


def test_scratch_is_reused_by_items_that_are_not_alive_together() -> None:
    model = dict.fromkeys(SIZES, 12)
    total = sum(lengths(SMOOTH, model, 0, False).values())
    assert SMOOTH.plan_scratch(model, 0, False).words < total


def test_parameters_are_unique_and_cover_every_field() -> None:
    for kernel in ALL:
        names = [p.split()[-1].lstrip("*") for p in parameters(kernel)]
        assert len(set(names)) == len(names), kernel.name
        used = {name for stage in kernel.stages for name in stage.fields}
        assert used <= set(names), kernel.name
        for name in (*kernel.produced, *kernel.updates):
            kind = "int" if FIELD[name].kind == "int" else "real"
            assert f"{kind}* {name}" in parameters(kernel), kernel.name
        for name in kernel.reads:
            assert any(p.startswith("const") and p.endswith(f"* {name}") for p in parameters(kernel)), kernel.name


def test_a_field_has_one_role() -> None:
    for kernel in ALL:
        roles = [*kernel.reads, *kernel.produced, *kernel.updates]
        assert len(set(roles)) == len(roles), kernel.name
        assert not set(kernel.addresses) & set(roles), kernel.name


@every_kernel
def test_source_defines_the_entry_point_once_and_every_body(kernel: Kernel) -> None:
    for source in (host_source(kernel), kernel_source(kernel, "cuda")):
        assert len(re.findall(rf'extern "C" .*\b{kernel.name}\(', source)) == 1
        flat = re.sub(r"\s+", "", re.sub(r"//.*", "", source))
        for stage in kernel.stages:
            # a body that reads inertia however it is stored names it qM
            signatures = {body_signature(stage), body_signature(stage).replace("qM_blocks", "qM")}
            assert sum(flat.count(re.sub(r"\s+", "", signature)) for signature in signatures) == 1
        assert "#pragma once" not in source
    assert all(path.exists() for path in stage_sources(kernel))


def test_a_single_stage_stores_all_it_writes() -> None:
    for stage in STAGES:
        kernel = single(stage)
        assert kernel.in_scratch == ()
        assert kernel.produced == stage.writes


def test_copies_come_after_the_last_body_that_changes_the_field() -> None:
    for kernel in ALL:
        copied = [name for i in range(len(kernel.stages)) for name in kernel.copy_after(i)]
        assert sorted(copied) == sorted(kernel.in_scratch)
    qacc = [i for i in range(3) if "qacc" in finish("rk4", "solve_newton_unilateral", False).copy_after(i)]
    assert qacc == [2], "the Runge-Kutta body replaces qacc by the mean that was integrated"


def test_names_of_kernels_are_unique() -> None:
    assert len({kernel.name for kernel in ALL}) == len(ALL)
    by_name = {}
    for kernel in (k for pair in product(("", *INTEGRATORS), SOLVERS) for k in step_kernels(*pair)):
        assert by_name.setdefault(kernel.name, kernel) == kernel, "two kernels of one name"


def test_a_declaration_names_known_fields_once() -> None:
    with pytest.raises(ValueError, match="unknown field"):
        Stage("odd", reads=("qpos", "nonsense"))
    with pytest.raises(ValueError, match="twice"):
        Stage("odd", reads=("qpos",), updates=("qpos",))


def test_every_field_has_a_writer_or_is_state() -> None:
    solvers = [kernel for kernels in island_kernels.ISLAND_SOLVERS.values() for kernel in kernels]
    solvers += [large for large in map(for_large, solvers) if large]
    written = {n for kernel in solvers for n in (*map(kernel.stored_as, kernel.produced), *kernel.island_scratch)}
    written |= {
        n
        for stage in (
            *STAGES,
            *(s for k in (*SEARCHES, *with_branches()) for s in k.stages),
            *PRISM_STAGES,
            *island_kernels.ISLAND_STAGES,
            *PAIR_STAGES,
        )
        for n in (*stage.writes, *stage.updates)
    }
    inputs = {"ctrl", "qfrc_applied", "xfrc_applied", "mocap_pos", "mocap_quat", "eq_active"}
    assert {f.name for f in FIELDS} - written == inputs
