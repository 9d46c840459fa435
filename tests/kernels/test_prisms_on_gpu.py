"""Contacts with height fields as GPUs find them, where lanes have prisms of any world, in kernels that run on the host.

The host's own build does the same by another way: there a lane has all prisms of a world.
"""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
import pytest

from simengine import Simulation, load_model
from simengine.backends import select
from simengine.kernels.kernel import Kernel
from simengine.model import build, load_table
from simengine.plan import contact_kernels
from simengine.plan.variants import without_kinds
from tests.gpu.compare import to_host
from tests.helpers.cuda_on_host.backend import FiberBackend
from tests.helpers.cuda_on_host.program import FIRST_TO_LAST
from tests.helpers.cuda_on_host.resident import FiberResident
from tests.kernels.test_cuda_on_host import differing, found, memory_of
from tests.stages.contacts import Found, by_mujoco
from tests.stages.harness import Memory, arguments, call
from tests.stages.harness_chain import single
from tests.stages.test_hfield import SHAPES, compare, field_model, poses
from tests.stages.test_kept_contacts import on_field, rocks_on_a_field

LIST = without_kinds(contact_kernels.SEARCHES[0], hfields=False, searches=True)
LIST_OF_MANY = (without_kinds(contact_kernels.LIST_NEAR, hfields=False, searches=True), contact_kernels.COUNT_NEAR)
MANY = (*LIST_OF_MANY, *contact_kernels.PRISMS[:3], *contact_kernels.PRISM_TOUCHES_OF_MANY, contact_kernels.PRISMS[4])
FEW = (
    *(LIST, *contact_kernels.PRISMS[:2], contact_kernels.PRISM_DEPTH_BY_WARP, contact_kernels.PRISM_TOUCH_IN_EIGHT),
    contact_kernels.PRISMS[4],
)
COUNT = contact_kernels.SEARCHES[-1]
TOUCHES, DEEP = 1, 3  # of a prism, in prism_search.cuh
CAR = Path(__file__).parents[2] / "benchmarks" / "kinds" / "car.xml"


def on_gpu(monkeypatch: pytest.MonkeyPatch, mj: mujoco.MjModel, qpos: np.ndarray) -> tuple[list[Found], set[str]]:
    """Contacts that kernels of a GPU find in states, and the names of the kernels."""
    monkeypatch.setitem(select._MAKERS, "cuda", FiberBackend)
    monkeypatch.setattr(FiberBackend, "how", "counted")
    monkeypatch.setattr(FiberBackend, "used", used := set[str]())
    with Simulation(load_model(mj), num_worlds=len(qpos), backend="cuda") as sim:
        sim.set_state(qpos=qpos)
        sim.forward()
        each = (sim.contacts(world) for world in range(len(qpos)))
        contacts = [(np.column_stack((c.geom1, c.geom2)), c.dist, c.pos, c.frame.reshape(-1, 9)) for c in each]
        return [Found(*map(to_host, c)) for c in contacts], used


def assert_same(ours: list[Found], theirs: list[Found]) -> None:
    for mine, other in zip(ours, theirs, strict=True):
        for one, two in zip(mine, other, strict=True):
            np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("shapes", [SHAPES[1::2], pytest.param(SHAPES, marks=pytest.mark.slow)], ids=["three", "all"])
def test_a_gpu_agrees_with_mujoco(monkeypatch: pytest.MonkeyPatch, shapes: tuple[str, ...]) -> None:
    mj = field_model(shapes, 7, 9)
    qpos = poses(mj, 60)
    contacts, used = on_gpu(monkeypatch, mj, qpos)
    assert {"only_prism_list", "prism_touch_in_eight", "hfield_of_prisms"} <= used
    compare(contacts, by_mujoco(mj, qpos), "float32")


def test_an_ellipsoid_rests_on_a_face_only_if_its_point_is_above_or_below_that(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside a ridge, the foot of its point on a steep face may be beyond the face; then another way out is shorter."""
    mj = field_model(('type="ellipsoid" size="0.13 0.1 0.1"', 'type="ellipsoid" size="0.1 0.12 0.13"'), 9, 13)
    qpos = poses(mj, 60)
    contacts, used = on_gpu(monkeypatch, mj, qpos)
    assert {"only_prism_list", "hfield_of_prisms"} <= used
    compare(contacts, by_mujoco(mj, qpos), "float32")


@pytest.mark.parametrize("room", [0, 3, pytest.param(17, marks=pytest.mark.slow)])
def test_contacts_do_not_depend_on_how_many_prisms_are_listed(monkeypatch: pytest.MonkeyPatch, room: int) -> None:
    """What is not listed is found by other kernels, to the same bits."""
    mj = rocks_on_a_field()
    qpos = on_field(mj, 6)
    listed, _ = on_gpu(monkeypatch, mj, qpos)
    assert max(len(world.dist) for world in listed) > 17
    monkeypatch.setattr(build, "MOST_PRISMS", room)
    others, used = on_gpu(monkeypatch, mj, qpos)
    assert ("hfield" in used) == (room == 0)
    assert_same(others, listed)


def test_a_pair_has_no_more_contacts_than_mujoco_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    mj = field_model(('type="box" size="0.5 0.4 0.1"',), 20, 20)
    qpos = poses(mj, 6)
    wanted = by_mujoco(mj, qpos)
    assert any(len(world.dist) == mujoco.mjMAXCONPAIR for world in wanted)
    compare(on_gpu(monkeypatch, mj, qpos)[0], wanted, "float32")


def field_memory(worlds: int) -> Memory:
    """Poses of shapes on a field, and all else poisoned."""
    mj = field_model(SHAPES[1:5], 7, 9)
    memory = memory_of(mj, poses(mj, worlds), "float32")
    call(single("kinematics"), memory, arguments(single("kinematics"), memory))
    return memory


@pytest.mark.parametrize("kernels", [FEW, pytest.param(MANY, marks=pytest.mark.slow)], ids=["few", "many"])
def test_prisms_do_not_depend_on_the_order_of_lanes(kernels: tuple[Kernel, ...]) -> None:
    """Nor on what memory holds that nobody has set."""
    memory = field_memory(3)
    ours = found(memory, (*kernels, COUNT), FIRST_TO_LAST)
    assert ours["ncon"].sum() > 10
    assert 0 < ours["prism_queue"].reshape(-1)[0] < ours["prism_tally"][:, 0].sum()
    assert differing(memory, (*kernels, COUNT)) <= {"prism_queue"}
    call(single("collision_general"), memory, arguments(single("collision_general"), memory))
    np.testing.assert_array_equal(ours["ncon"], memory.own("ncon"))


def test_many_worlds_have_the_bits_of_few() -> None:
    memory = field_memory(4)
    one, other = (found(memory, (*kernels, COUNT), FIRST_TO_LAST) for kernels in (FEW, MANY))
    for name in ("near_adr", "prism_of", "prism_place", "prism_contact", "ncon", "nefc"):
        np.testing.assert_array_equal(one[name], other[name], err_msg=name)


def run(memory: Memory, kernels: tuple[Kernel, ...]) -> None:
    """Run kernels as on a GPU."""
    away = FiberResident(memory)
    for each in kernels:
        away.call(each, arguments(each, memory, scalars={"parts": 2}), worlds_a_block=4, parts=1 + each.in_parts)
    away.fetch()


def test_no_prism_is_searched_twice() -> None:
    """The narrowphase stores the contacts that counting found, and finds none itself; the pairs' list has none."""
    mj = rocks_on_a_field()
    memory = Memory(load_table(mj), "float32", 2, 500, 0)
    memory.set({"qpos": on_field(mj, 2), "world_status": np.zeros(2, np.int32)})
    run(memory, (single("kinematics"), *FEW, COUNT, single("scan")))
    tally, listed = memory.own("prism_tally"), memory.own("prism_of")
    assert (tally[:, 1] == memory.own("pair_tally")[:, 0]).all()
    for prisms, number in zip(listed, tally[:, 0], strict=True):
        assert len(np.unique(prisms[:number], axis=0)) == number > 0
    memory.own("prism_contact")[..., 0] += 1.0  # distances that no search finds
    run(memory, (contact_kernels.STORE_PRISMS,))
    dist = memory.own("contact_dist")[: memory.own("ncon").sum()]
    assert len(dist) > 10
    assert (dist > 0.5).all()


def driven_cars() -> tuple[mujoco.MjModel, np.ndarray]:
    """Cars that have driven for some steps, so that their wheels are on the field."""
    mj = mujoco.MjModel.from_xml_path(str(CAR))
    with Simulation(load_model(mj), num_worlds=16, backend="host") as sim:
        rng = np.random.default_rng(0)
        sim.set_state(qpos=sim.qpos + rng.normal(size=(16, mj.nq)) * 0.02, qvel=rng.normal(size=(16, mj.nv)) * 0.3)
        ctrl = rng.uniform(-1, 1, size=(16, mj.nu))
        sim.step(60, ctrl=ctrl)
        return mj, np.array(sim.qpos)


def test_wheels_touch_where_mujoco_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wheel rests on a face of the field with a point of its rim, which a search for a depth may place beside it."""
    mj, qpos = driven_cars()
    contacts, wanted = on_gpu(monkeypatch, mj, qpos)[0], by_mujoco(mj, qpos)
    for ours, theirs in zip(contacts, wanted, strict=True):
        np.testing.assert_array_equal(ours.geoms, theirs.geoms)
        np.testing.assert_allclose(ours.pos, theirs.pos, rtol=0, atol=2e-3)
        np.testing.assert_allclose(ours.dist, theirs.dist, rtol=0, atol=2e-6)


def test_wheels_across_an_edge_of_the_field_need_no_search() -> None:
    """The lowest line of a wheel lies on two prisms, of which one has the wheel's lowest point."""
    mj, qpos = driven_cars()
    memory = memory_of(mj, qpos, "float32")
    run(memory, (single("kinematics"), *MANY[:4]))
    tally, states = memory.own("prism_tally")[:, 0], memory.own("prism_state").reshape(len(qpos), -1)
    found = np.concatenate([own[:number] for own, number in zip(states, tally, strict=True)])
    assert (found == TOUCHES).sum() > 4 * len(qpos)
    assert (found == DEEP).sum() < 0.1 * (found == TOUCHES).sum()
