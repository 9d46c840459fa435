"""Worlds of 33 to 64 rows have the same bits where one warp of a GPU solves them as where two do.

Both kernels run on the host, with lanes as fibers. A model has contacts of every dimension, limits, friction losses of
dofs and equalities, and the states of its worlds are drawn at random.
"""

from __future__ import annotations

from functools import cache

import mujoco
import numpy as np
import pytest

from simengine import Simulation, load_model
from simengine.backends import select
from simengine.model import load_table
from simengine.plan.stages import SOLVE_NEWTON_GENERAL
from simengine.plan.variants import WARPS_OF_MANY_ROWS, by_warps
from tests.gpu.compare import state_bits
from tests.gpu.test_warps_of_worlds import MODELS
from tests.helpers.cuda_on_host.backend import FiberBackend
from tests.helpers.cuda_on_host.program import FIRST_TO_LAST, SCHEDULES, Edit, Schedule
from tests.helpers.cuda_on_host.resident import FiberResident
from tests.stages.harness import Memory, arguments, call, changed, list_worlds
from tests.stages.harness_chain import calls, most_rows, single

ROWS = (33, 64)
"""Fewest and most rows of the worlds that both kernels solve."""


def chain(links: int, cone: str) -> mujoco.MjModel:
    """A chain of boxes or capsules near the floor, whose last link is held at a point of the world."""
    shape = "type='box' pos='0.05 0 0' size='0.04 0.03 0.03'"
    if links > 4:
        shape = "type='capsule' fromto='0 0 0 0.1 0 0' size='0.03'"
    bodies = ""
    for i in range(links):
        joint = f"axis='0 {i % 2} {1 - i % 2}' range='-10 10' frictionloss='0.1'"
        bodies += f"<body name='link{i}' pos='0.1 0 0'><joint {joint}/><geom {shape} condim='{(6, 3, 4, 1)[i % 4]}'/>"
    return mujoco.MjModel.from_xml_string(
        f"<mujoco><option cone='{cone}'/><worldbody><geom type='plane' size='9 9 1' condim='1'/>"
        f"<body pos='0 0 0.03'><freejoint/><geom type='sphere' size='0.03'/>{bodies}{'</body>' * links}</body>"
        f"</worldbody><equality><connect body1='link{links - 1}' anchor='0.1 0 0'/></equality></mujoco>"
    )


@cache
def before_solution(
    links: int, cone: str, dtype: str, worlds: int, bounds: tuple[int, int] = ROWS, contacts: int = 40
) -> Memory:
    """A memory with all that the solver reads, whose list has the worlds whose rows are within bounds.

    There is room for so many contacts of a world, and for five times as many rows.
    """
    mj, rng = chain(links, cone), np.random.default_rng(links)
    model = load_table(mj)
    assert model.solver == SOLVE_NEWTON_GENERAL.name
    memory = Memory(model, dtype, worlds, contacts * worlds, 5 * contacts * worlds)
    for name in ("act", "ctrl", "qfrc_applied", "xfrc_applied", "world_status", "nstep"):
        memory.own(name)[...] = 0
    qpos = np.tile(mj.qpos0, (worlds, 1))
    qpos[:, 2] += rng.uniform(-0.02, 0.01, worlds)
    qpos[:, 7:] += rng.uniform(-0.2, 0.2, (worlds, links))
    qvel, warm = rng.normal(size=(2, worlds, mj.nv))
    memory.set({"qpos": qpos, "qvel": qvel, "qacc_warmstart": 30 * warm, "eq_active": np.ones((worlds, mj.neq))})
    for kernel, slots in calls(memory, "", 0):
        if kernel.name == model.solver:
            break
        call(kernel, memory, slots)
    rows = memory.own("nefc")
    chosen = np.flatnonzero((rows >= bounds[0]) & (rows <= bounds[1]))
    list_worlds(memory, chosen.astype(np.int32))
    return memory


def solved(memory: Memory, in_one: bool, schedule: Schedule = FIRST_TO_LAST, edit: Edit = str) -> Memory:
    """The memory after the solver has run for the worlds of the list."""
    kernel = by_warps(single(memory.model.solver), memory.model.nv, WARPS_OF_MANY_ROWS, in_one)
    away = FiberResident(memory.copy(), schedule, edit)
    slots = arguments(kernel, away.memory, True, most_rows(memory))
    # the lanes of two warps wait for their whole block, which has one world
    away.call(kernel, slots, worlds_a_block=4 if in_one else 1)
    away.fetch()
    return away.memory


def differing(one: Memory, two: Memory) -> set[str]:
    """Fields that the solver writes and whose bits differ."""
    return {name for name in SOLVE_NEWTON_GENERAL.writes if changed(one.own(name), two.own(name)).any()}


def assert_hard(memory: Memory, worlds: int) -> None:
    """Assert that so many worlds were solved, and that some needed several steps of Newton's method."""
    listed = memory.arrays["listed"][: memory.arrays["num_listed"][0]]
    steps = memory.arrays["solver_niter"].reshape(-1)[listed]
    assert len(listed) >= worlds
    assert (steps >= 1).all()
    assert (steps >= 4).any()


def test_one_warp_adds_in_the_order_of_two() -> None:
    memory = before_solution(3, "elliptic", "float32", 12)
    two = solved(memory, in_one=False)
    assert_hard(two, 4)
    assert differing(solved(memory, in_one=True), two) == set()


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("cone", ["elliptic", "pyramidal"])
@pytest.mark.parametrize("links", [2, 3, 14])
def test_one_warp_has_the_bits_of_two_in_every_order_of_lanes(links: int, cone: str, dtype: str) -> None:
    memory = before_solution(links, cone, dtype, 40)
    two = solved(memory, in_one=False)
    assert_hard(two, 5)
    for schedule in SCHEDULES:
        assert differing(solved(memory, True, schedule), two) == set()
        assert differing(solved(memory, False, schedule), two) == set()


@pytest.mark.slow
@pytest.mark.parametrize("cone", ["elliptic", "pyramidal"])
def test_one_warp_has_the_bits_of_two_with_four_rows_in_a_lane(cone: str) -> None:
    memory = before_solution(14, cone, "float32", 40, (65, 128))
    two = solved(memory, in_one=False)
    assert_hard(two, 5)
    assert differing(solved(memory, in_one=True), two) == set()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("there", "here"),
    [
        ("const bool of_second = row & LANES;", "const bool of_second = false;"),
        ("number % SOLVER_WARPS == share", "(number + 1) % SOLVER_WARPS == share"),
        ("first = part * share,", "first = part * (1 - share),"),
    ],
)
def test_another_order_has_other_bits(there: str, here: str) -> None:
    def in_other_order(text: str) -> str:
        assert there in text
        return text.replace(there, here)

    memory = before_solution(5, "elliptic", "float32", 40)
    other = solved(memory, in_one=True, edit=in_other_order)
    two = solved(memory, in_one=False)
    assert "qacc" in differing(other, two)
    np.testing.assert_allclose(other.own("qacc"), two.own("qacc"), rtol=0, atol=2)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_steps_have_the_same_bits_by_one_warp_and_by_two(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(select._MAKERS, "cuda", FiberBackend)
    found, worlds = [], 5
    for few in (0, worlds):
        monkeypatch.setattr("simengine.plan.selection.FEW_WORLDS_BY_TWO_WARPS", few)
        monkeypatch.setattr(FiberBackend, "used", set[str]())
        sim = Simulation(load_model(MODELS[name]), worlds, backend="cuda", executor="serial", dtype="float32")
        sim.set_state(qvel=np.random.default_rng(2).normal(size=(worlds, sim.groups[0].model.nv)))
        sim.step(12)
        found.append(state_bits(sim))
        sim.close()
        assert any("2_warps_in_one" in used for used in FiberBackend.used) == (few == 0)
    assert found[0] == found[1]
