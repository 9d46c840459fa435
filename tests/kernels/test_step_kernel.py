"""Kernels of whole steps: tracks that may run in parallel, and shared memory for all values that are alive."""

from __future__ import annotations

from itertools import combinations

import pytest

from simengine import load_model
from simengine.kernels.step_codegen import step_parameters, step_source
from simengine.kernels.step_kernel import STEP_KERNELS, StepKernel
from simengine.physics.dynamics.acceleration import ACCELERATION_WIDE
from simengine.physics.dynamics.crb import CRB
from simengine.physics.dynamics.factor_m import FACTOR_M
from simengine.physics.dynamics.rne import RNE
from simengine.state.fields import FIELD, entry_shape, padded
from tests.models import gymnasium_path

every_kernel = pytest.mark.parametrize("kernel", STEP_KERNELS, ids=lambda k: k.name)


def test_tracks_that_meet_are_refused() -> None:
    with pytest.raises(ValueError, match=r"tracks of kernel 'wrong' meet in \['qM'\]"):
        StepKernel("wrong", (CRB, FACTOR_M), phases=(((CRB,), (FACTOR_M,)),))
    StepKernel("right", (CRB, RNE, FACTOR_M), phases=(((CRB,), (RNE,)), ((FACTOR_M,),)))


@every_kernel
def test_what_a_stage_reads_was_there_before_its_phase(kernel: StepKernel) -> None:
    there = {*kernel.reads, *kernel.updates}
    for phase in kernel.phases:
        made = set()
        for track in phase:
            known = set(there)
            for stage in track:
                assert {*stage.reads, *stage.updates} <= known
                known.update(stage.writes)
            made |= known
        there = made


@every_kernel
def test_near_items_alive_together_have_words_of_their_own(kernel: StepKernel) -> None:
    sizes = load_model(gymnasium_path("ant")).table.sizes
    plan = kernel.plan_scratch(sizes, 32, True)
    rows = dict.fromkeys(kernel.rows, 32)
    words = {}
    for item in kernel.scratch_items:
        if item.name in FIELD:
            number = rows.get(item.name, 1)
            for size in entry_shape(FIELD[item.name], sizes):
                number *= size
            words[item.name] = number
    items = [item for item in kernel.scratch_items if item.name in words]
    assert {item.name for item in items} == set(kernel.shared_fields)
    for one, other in combinations(items, 2):
        if one.first <= other.last and other.first <= one.last:
            first, second = sorted((one.name, other.name), key=lambda name: plan.offsets[name])
            assert plan.offsets[first] + words[first] <= plan.offsets[second]
    assert all(plan.offsets[name] + number <= plan.words for name, number in words.items())
    assert all(offset % 4 == 0 for offset in plan.offsets.values())


@every_kernel
def test_far_fields_follow_one_another(kernel: StepKernel) -> None:
    sizes = load_model(gymnasium_path("ant")).table.sizes
    plan = kernel.plan_global(sizes, 10, 0)
    contacts = [name for name in kernel.global_fields if FIELD[name].space == "contact"]
    assert plan.words == sum(padded(10 * max(1, *entry_shape(FIELD[n], sizes), 1)) for n in contacts)
    assert kernel.plan_global(sizes, 10, 7).words > plan.words


@every_kernel
def test_the_source_calls_every_stage_once(kernel: StepKernel) -> None:
    source = step_source(kernel)
    for stage in kernel.stages:
        assert source.count(f"::{stage.name}(m, ") == 1
    assert all(source.count(f"TEAM_BARRIER({k});") == 1 for k in range(-1, len(kernel.phases)))
    assert len(set(step_parameters(kernel))) == len(step_parameters(kernel))


def test_an_acceleration_waits_for_what_it_adds_up() -> None:
    for kernel in STEP_KERNELS:
        phase = next(k for k, tracks in enumerate(kernel.phases) if any(ACCELERATION_WIDE in track for track in tracks))
        assert phase == 2
