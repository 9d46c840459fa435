"""Positions of a world that half a warp of a GPU finds, on the host with lanes as fibers."""

from __future__ import annotations

import numpy as np
import pytest

from simengine import load_model
from simengine.kernels.kernel import Kernel
from simengine.plan.catalogue import POSITION, POSITION_IN_SIXTEEN, in_parts
from simengine.plan.selection import MOST_WORLDS_BY_WARPS, Selection
from tests.helpers.cuda_on_host.program import FIRST_TO_LAST
from tests.helpers.cuda_on_host.resident import FiberResident
from tests.helpers.humanoids import humanoid_xml
from tests.stages.harness import Memory, arguments, changed


def before_positions(worlds: int, dtype: str) -> Memory:
    """A memory of humanoids in random poses, some of which touch the floor."""
    model, rng = load_model("humanoid").table, np.random.default_rng(5)
    memory = Memory(model, dtype, worlds, 20 * worlds, 100 * worlds)
    for name in ("act", "ctrl", "qfrc_applied", "xfrc_applied", "world_status", "nstep"):
        memory.own(name)[...] = 0
    qpos = np.tile(model.mj.qpos0, (worlds, 1))
    qpos[:, 2] -= np.linspace(0.1, 1.3, worlds)
    qpos[:, 3:] += rng.uniform(-0.3, 0.3, (worlds, model.nq - 3))
    qvel, warm = rng.normal(size=(2, worlds, model.nv))
    memory.set({"qpos": qpos, "qvel": qvel, "qacc_warmstart": warm})
    return memory


def positioned(memory: Memory, kernel: Kernel, worlds: int) -> Memory:
    away = FiberResident(memory.copy(), FIRST_TO_LAST)
    away.call(kernel, arguments(kernel, away.memory, False, 0), worlds_a_block=worlds)
    away.fetch()
    return away.memory


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_half_a_warp_finds_the_positions_that_a_warp_does(dtype: str) -> None:
    memory = before_positions(7, dtype)
    whole, halves = positioned(memory, POSITION, 1), positioned(memory, POSITION_IN_SIXTEEN, 4)
    assert len(set(whole.own("ncon").ravel().tolist())) > 2
    assert not {name for name in POSITION.produced if changed(whole.own(name), halves.own(name)).any()}


def test_half_a_warp_has_the_worlds_of_very_large_batches() -> None:
    model = load_model("humanoid").table
    many, more = (
        Selection(model, worlds, "rk4", frozenset(), True, spreads_searches=True).position()
        for worlds in (MOST_WORLDS_BY_WARPS, MOST_WORLDS_BY_WARPS + 1)
    )
    assert many == (in_parts(POSITION),)
    assert more == (POSITION_IN_SIXTEEN,)
    assert Selection(model, 2 * MOST_WORLDS_BY_WARPS, "rk4", frozenset(), True).position() == (POSITION,)


def test_a_warp_has_worlds_of_more_dofs_than_two_in_a_lane_of_half_of_it() -> None:
    model = load_model(humanoid_xml(frictionloss=0)).table
    assert model.nv == 35
    selection = Selection(model, 2 * MOST_WORLDS_BY_WARPS, "euler", frozenset(), True, spreads_searches=True)
    assert POSITION_IN_SIXTEEN not in selection.position()
