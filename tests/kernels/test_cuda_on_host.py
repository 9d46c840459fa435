"""Kernels as a GPU gets them, run without one: see `tests.helpers.cuda_on_host.program`.

Faults are planted to show that each kind is found, in small kernels and in those of the engine.
"""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from simengine.backends import select
from simengine.kernels.kernel import Kernel
from simengine.model import load_table
from simengine.plan import contact_kernels
from simengine.state.fields import FIELD
from tests.golden.cases import CASES
from tests.golden.play import Outcome, play
from tests.helpers.cuda_on_host.backend import FiberBackend
from tests.helpers.cuda_on_host.program import FIRST_TO_LAST, SCHEDULES, Edit, GpuFaultError, Schedule, run_text
from tests.helpers.cuda_on_host.resident import FiberResident
from tests.stages.harness import Memory, arguments, call, changed
from tests.stages.harness_chain import single
from tests.stages.test_hfield import SHAPES as SHAPES_ON_FIELD
from tests.stages.test_hfield import field_model, poses

HALVES = "threadIdx.x < 16 ? 0xffffu : 0xffff0000u"


def kernel(body: str) -> str:
    """A kernel with an array in shared memory that all threads of a block share."""
    return f'extern "C" __global__ void kernel(float* numbers) {{\n  float* all = (float*)shared_memory;\n{body}}}\n'


PASS_ON = """
  all[threadIdx.x] = numbers[threadIdx.x];
  {sync}
  numbers[threadIdx.x] = all[(threadIdx.x + {by}) % 32];
"""


def passed_on(sync: str, by: int, schedule: Schedule) -> np.ndarray:
    return run_text(kernel(PASS_ON.format(sync=sync, by=by)), np.arange(32.0), (32, 1), schedule)


@pytest.mark.parametrize("sync", ["__syncwarp();", "__syncthreads();"])
def test_threads_see_what_others_wrote_before_a_barrier(sync: str) -> None:
    for schedule in SCHEDULES:
        np.testing.assert_array_equal(passed_on(sync, 1, schedule), (np.arange(32) + 1) % 32)


@pytest.mark.parametrize("by", [1, 31])
def test_a_missing_barrier_shows_in_another_order_of_threads(by: int) -> None:
    results = {passed_on("", by, schedule).tobytes() for schedule in (Schedule(0), Schedule(1))}
    assert len(results) == 2


def test_shared_memory_that_nobody_set_shows() -> None:
    body = "  numbers[threadIdx.x] = all[threadIdx.x + 32];\n"
    assert np.isnan(run_text(kernel(body), np.zeros(32), (32, 1), Schedule(0, 255))).all()
    assert not run_text(kernel(body), np.ones(32), (32, 1), Schedule(0, 0)).any()


def test_a_variable_that_nobody_set_shows() -> None:
    body = (
        "  float sum[4];\n  for (int i = 0; i < 3; ++i) sum[i] = 0;\n  numbers[threadIdx.x] = sum[threadIdx.x % 4];\n"
    )
    left = run_text(kernel(body), np.zeros(32), (32, 1))
    assert not left[0]
    assert not abs(left[3]) < 1e30


LEFT = "a mask with a thread that has returned|wait for others at a collective for ever"
"""Which thread comes last decides what is said."""

COLLECTIVES = {
    "all": ("numbers[threadIdx.x] = __shfl_xor_sync(0xffffffffu, numbers[threadIdx.x], 1);", 32, ""),
    "halves": (f"numbers[threadIdx.x] = __shfl_xor_sync({HALVES}, numbers[threadIdx.x], 1, 16);", 32, ""),
    "early exit": ("if (threadIdx.x == 3) return;\n__syncwarp();", 32, LEFT),
    "other masks": (
        "if (threadIdx.x < 16) __syncwarp(0xffffu);\nelse __syncwarp();",
        32,
        f"another mask than a thread in it has|{LEFT}",
    ),
    "own mask": ("__syncwarp(0xfffffffeu);", 32, "a collective whose mask lacks its own thread"),
    "other kinds": (
        "if (threadIdx.x % 2) __syncwarp();\nelse __ballot_sync(0xffffffffu, 1);",
        32,
        "a collective of another kind than a thread of its mask waits at",
    ),
    "beyond the mask": (f"__shfl_sync({HALVES}, 1.0f, threadIdx.x ^ 16);", 32, "a thread that its mask lacks"),
    "beyond the block": ("__syncwarp();", 16, "a mask with threads beyond the block"),
    "block left": ("if (threadIdx.x != 5) __syncthreads();", 64, "a barrier that a thread of the block has returned"),
    "block waits": (
        "if (threadIdx.x == 40) __syncwarp();\nelse __syncthreads();",
        64,
        "a barrier while threads wait at a collective",
    ),
}
"""Bodies of kernels, the threads of their block, and what is found: nothing in the first two."""


@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize("case", COLLECTIVES)
def test_collectives_that_break_the_rules_are_found(case: str, order: int) -> None:
    body, threads, message = COLLECTIVES[case]
    found = ""
    try:
        left = run_text(kernel(f"  {body}\n"), np.arange(64.0), (threads, 1), Schedule(order))
        assert message or (left[:32] == np.arange(32) ^ 1).all()
    except GpuFaultError as error:
        found = str(error)
    assert any(part in found for part in message.split("|"))
    assert bool(found) == bool(message)


def memory_of(mj: mujoco.MjModel, qpos: np.ndarray, dtype: str) -> Memory:
    """A memory with poses, and all else poisoned."""
    worlds = len(qpos)
    memory = Memory(load_table(mj), dtype, worlds, 200 * worlds, 0)
    memory.set({"qpos": qpos.reshape(worlds, -1), "world_status": np.zeros(worlds, np.int32)})
    return memory


def found(memory: Memory, kernels: tuple[Kernel, ...], schedule: Schedule, edit: Edit = str) -> dict[str, np.ndarray]:
    """All fields after kernels have run as on a GPU."""
    away = FiberResident(memory.copy(), schedule, edit)
    for each in kernels:
        away.call(each, arguments(each, memory, scalars={"parts": 2}), worlds_a_block=4, parts=1 + each.in_parts)
    away.fetch()
    return {name: away.memory.own(name) for name in FIELD}


def differing(memory: Memory, kernels: tuple[Kernel, ...], edit: Edit = str) -> set[str]:
    """Fields whose bits depend on how threads take turns, or on what shared memory begins with."""
    first, *others = (found(memory, kernels, schedule, edit) for schedule in SCHEDULES)
    return {name for name in FIELD for other in others if changed(first[name], other[name]).any()}


POSES = (single("kinematics"), single("com_pos"))


def chain() -> Memory:
    """Three worlds of a chain of capsules, each body on a level of its own."""
    links = (
        "".join("<body pos='0.2 0 0'><joint/><geom type='capsule' size='.05 .1'/>" for _ in range(9)) + 9 * "</body>"
    )
    mj = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{links}</worldbody></mujoco>")
    return memory_of(mj, np.random.default_rng(5).normal(size=(3, mj.nq)), "float64")


def test_poses_do_not_depend_on_the_order_of_lanes() -> None:
    memory = chain()
    ours = found(memory, POSES, Schedule())
    for kernel in POSES:
        call(kernel, memory, arguments(kernel, memory))
    for name in (n for kernel in POSES for n in kernel.produced):
        np.testing.assert_allclose(ours[name], memory.own(name), rtol=0, atol=1e-12)
    assert differing(chain(), POSES) == set()


def test_a_barrier_that_a_kernel_lacks_is_found() -> None:
    def without_barriers(text: str) -> str:
        after_a_round = "    lane_sync();\n  }\n  LANE_FOR(e, m.nbody() - 1) normalize4"
        assert after_a_round in text
        return text.replace(after_a_round, after_a_round.replace("lane_sync();", ""))

    assert "xpos" in differing(chain(), POSES[:1], without_barriers)


SHAPES = ("ellipsoid' size='0.1 0.12 0.15", "cylinder' size='0.08 0.1", "box' size='0.15 0.1 0.1", "mesh' mesh='rock")
ROCK = " ".join(f"{x:.3f}" for x in np.random.default_rng(1).normal(size=72) * 0.1)


def heap(worlds: int) -> Memory:
    """Shapes of every kind that a search tells apart, around each other, with their poses."""
    bodies = "".join(f"<body><freejoint/><geom type='{SHAPES[i % 4]}'/></body>" for i in range(7))
    mesh = f"<asset><mesh name='rock' vertex='{ROCK}'/></asset>"
    mj = mujoco.MjModel.from_xml_string(f"<mujoco>{mesh}<worldbody>{bodies}</worldbody></mujoco>")
    rng = np.random.default_rng(3)
    qpos = np.concatenate([rng.uniform(-0.1, 0.1, (worlds, 7, 3)), rng.normal(size=(worlds, 7, 4))], axis=2)
    memory = memory_of(mj, qpos, "float32")
    call(POSES[0], memory, arguments(POSES[0], memory))
    return memory


FEW = (
    *(contact_kernels.SEARCHES[0], contact_kernels.DISTANCE_IN_EIGHT),
    *(contact_kernels.DEPTH_BY_WARP, contact_kernels.TOUCH_IN_EIGHT),
)
"""Searches of few worlds, and those of many."""
MANY = contact_kernels.SEARCHES[:4]


@pytest.mark.parametrize("kernels", [FEW, pytest.param(MANY, marks=pytest.mark.slow)], ids=["few", "many"])
def test_searches_do_not_depend_on_the_order_of_lanes(kernels: tuple[Kernel, ...]) -> None:
    memory = heap(3)
    ours = found(memory, kernels, Schedule())
    assert np.count_nonzero(ours["search_state"] == 2) > 10
    # the queue's order depends on timing
    assert differing(memory, kernels) <= {"search_queue"}
    for kernel in contact_kernels.SEARCHES[:4]:
        call(kernel, memory, arguments(kernel, memory, scalars={"parts": 2}))
    np.testing.assert_array_equal(ours["search_found"], memory.own("search_found"))
    np.testing.assert_allclose(ours["kept_contact"], memory.own("kept_contact"), rtol=0, atol=1e-5)


@pytest.mark.slow
def test_contacts_with_height_fields_do_not_depend_on_the_order_of_lanes() -> None:
    """Nor on what a prism's shape leaves unset: a table of a mesh there would be read from nowhere."""
    mj = field_model(SHAPES_ON_FIELD, 7, 9)
    memory, kernels = memory_of(mj, poses(mj, 2), "float32"), (single("collision_general"),)
    call(POSES[0], memory, arguments(POSES[0], memory))
    ours = found(memory, kernels, FIRST_TO_LAST)
    assert differing(memory, kernels) == set()
    call(kernels[0], memory, arguments(kernels[0], memory))
    assert ours["ncon"].sum() > 20
    np.testing.assert_array_equal(ours["ncon"], memory.own("ncon"))


def stepped(name: str, schedule: Schedule, monkeypatch: pytest.MonkeyPatch) -> Outcome:
    monkeypatch.setattr(FiberBackend, "schedule", schedule)
    monkeypatch.setitem(select._MAKERS, "cuda", FiberBackend)
    return play(CASES[name], "cuda", "serial", "float32")


@pytest.mark.slow
@pytest.mark.parametrize("how", ["ahead", "counted"])
@pytest.mark.parametrize("name", CASES)
def test_steps_do_not_depend_on_the_order_of_lanes(name: str, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A few steps of each golden case, in kernels that lanes, warps and blocks of a GPU share."""
    monkeypatch.setattr(FiberBackend, "how", how)
    monkeypatch.setattr("tests.golden.play.CHUNK", 1)
    monkeypatch.setattr("tests.golden.play.CHUNKS", 3)
    outcomes = [stepped(name, schedule, monkeypatch) for schedule in SCHEDULES]
    assert outcomes[0].finite
    assert len({outcome.hash for outcome in outcomes}) == 1


MIXED = ("capsule' size='0.05 0.1", "box' size='0.1 0.05 0.08", "sphere' size='0.07", "cylinder' size='0.06 0.1")


def test_lanes_with_pairs_of_any_world_count_what_those_of_a_world_do() -> None:
    """Pairs of five types without a search, and others, each world with other numbers of them."""
    floor = "<geom type='plane' size='1 1 1' pos='0 0 -0.2'/>"
    bodies = "".join(f"<body><freejoint/><geom type='{MIXED[i % 4]}'/></body>" for i in range(9))
    mj = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{floor}{bodies}</worldbody></mujoco>")
    rng = np.random.default_rng(4)
    qpos = np.concatenate([rng.uniform(-0.3, 0.3, (40, 9, 3)), rng.normal(size=(40, 9, 4))], axis=2)
    memory = memory_of(mj, qpos, "float32")
    call(POSES[0], memory, arguments(POSES[0], memory))
    rest, schedule = contact_kernels.SEARCHES[1:], Schedule()
    wanted = found(memory, (contact_kernels.SEARCHES[0], *rest), schedule)
    ours = found(memory, (contact_kernels.LIST_NEAR, contact_kernels.COUNT_NEAR, *rest), schedule)
    assert len(set(wanted["ncon"].ravel().tolist())) > 5
    for name in ("near_cand", "near_adr", "search_near", "ncon", "nefc", "counts"):
        np.testing.assert_array_equal(ours[name], wanted[name], err_msg=name)


def test_lanes_that_share_a_search_find_what_a_single_lane_finds() -> None:
    """Contacts by eight lanes a pair, and by one."""
    memory = heap(8)
    searched = FiberResident(memory)
    for each in FEW[:3]:
        searched.call(each, arguments(each, memory, scalars={"parts": 2}), worlds_a_block=4, parts=1 + each.in_parts)
    searched.fetch()
    eight, one = (found(memory, (kernel,), Schedule()) for kernel in (FEW[3], MANY[3]))
    assert np.count_nonzero(eight["search_found"]) > 60
    assert [name for name in FIELD if changed(eight[name], one[name]).any()] == []
