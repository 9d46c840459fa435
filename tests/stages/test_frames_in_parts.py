"""Kinematics whose matrices, frames and inertias are in scratch one after another: the bits of kinematics in one."""

from __future__ import annotations

import numpy as np
import pytest

from simengine.plan import catalogue
from tests.stages.harness import Memory, arguments, call, changed
from tests.stages.harness_chain import start

WORLDS = 3
WHOLES = (
    *(catalogue.POSES, catalogue.POSES_OF_MANY[0], catalogue.POSITION),
    *(catalogue.POSES_GENERAL, catalogue.POSES_SITELESS, *catalogue.POSES_OF_MANY[1:]),
    *(catalogue.POSITION_GENERAL, catalogue.POSITION_SITELESS),
)
"""Kernels of kinematics; from the fourth on, those of general models."""
MODELS = ("ant", "pile", "linkage", "rollers", "ropes", "tendons")


def results(memory: Memory, kernel: catalogue.Kernel) -> Memory:
    """A copy of the memory after a call of a kernel."""
    after = memory.copy()
    call(kernel, after, arguments(kernel, after))
    assert not after.broken_guards()
    return after


@pytest.mark.parametrize("name", MODELS)
def test_parts_have_the_bits_of_the_whole(name: str) -> None:
    memory = start(name, "float32", 0, WORLDS)
    general = memory.model.general_position
    for whole in WHOLES if general else WHOLES[:3]:
        parts = catalogue.in_parts(whole)
        theirs, ours = results(memory, whole), results(memory, parts)
        assert np.isfinite(ours.own("cinert")).all()
        for field in parts.produced:
            assert not changed(ours.arrays[field], theirs.arrays[field]).any(), (parts.name, field)


def test_scratch_has_one_part_at_a_time() -> None:
    sizes = start("ant", "float32", 0, 1).model.sizes
    of = (catalogue.POSES, catalogue.POSES_IN_PARTS[0])
    whole, parts = (kernel.plan_scratch(sizes, 0, True).words for kernel in of)
    assert parts < 0.7 * whole
