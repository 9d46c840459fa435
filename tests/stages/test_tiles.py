"""Tiled kernels called directly: the bits of the stages one by one, and no access beside the buffers.

Batches have as many worlds as do not fill their last tile. Nothing in memory is padded for tiles.
"""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from simengine.kernels.kernel import Kernel
from simengine.model import load_table
from simengine.physics.solvers.solve_newton_unilateral import SOLVE_NEWTON_UNILATERAL
from simengine.plan import catalogue, tiles
from simengine.plan.stages import CONSTRAINT
from simengine.state.fields import FIELD, ROW_CLASSES
from tests.gpu import memories
from tests.helpers.oracle import sample
from tests.models import compile_model
from tests.stages import harness
from tests.stages.harness import Argument, Memory, arguments, call, changed
from tests.stages.harness_chain import calls, most_rows, rk_scalars, start, state_fields
from tests.stages.harness_sanitizer import Call, Result, build_tiled, execute, slots_of, supported
from tests.stages.units import Edit

SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-O1")
WORLDS = (3, 17)
PLAIN = (tiles.INERTIA, tiles.INERTIA_SITES, tiles.MOTION, tiles.MOTION_SITES)
FLUID = (tiles.MOTION_FLUID, tiles.MOTION_FLUID_SITES)
MOTIONS = [
    *(("ant", kernel) for kernel in PLAIN[::2]),
    *(("tendons", kernel) for kernel in PLAIN[1::2]),
    *(("swimmer", kernel) for kernel in FLUID),
]
"""Models, and tiled kernels of the motion that serve them."""

BLOCKS = ("pile", "two_arms")
"""Models of several trees."""

WORKING = {"damped_blocks"}
"""Fields that a stage works in, and may leave as they were."""

of_motion = pytest.mark.parametrize(("name", "kernel"), MOTIONS, ids=[f"{name}-{k.name}" for name, k in MOTIONS])
in_both = pytest.mark.parametrize("dtype", ["float32", "float64"])
integrations = pytest.mark.parametrize(("integrator", "rk_stage"), [("", 0), ("euler", 0), ("rk4", 0), ("rk4", 3)])


def finishing(integrator: str) -> Kernel:
    """The tiled kernel that makes rows, solves, and integrates."""
    return tiles.in_tiles(catalogue.finish(integrator, SOLVE_NEWTON_UNILATERAL.name, arena=False))


def lying_boxes(dtype: str, rk_stage: int) -> Memory:
    """A memory with worlds of none to four boxes that lie on a plane, on up to 16 corners with ten rows each."""
    boxes = "".join(f'<body pos="{k} 0 1"><freejoint/><geom type="box" size=".1 .1 .1"/></body>' for k in range(4))
    mj = mujoco.MjModel.from_xml_string(
        f'<mujoco><default><geom condim="6"/></default><worldbody><geom type="plane" size="9 9 1"/>{boxes}</worldbody>'
        "</mujoco>"
    )
    model, rng = load_table(mj), np.random.default_rng(3)
    memory = Memory(model, dtype, 10, 16 * 20, 160 * 20)
    qpos = np.tile(mj.qpos0, (10, 1)).reshape(10, 4, 7)
    qpos[..., 2] = np.where(np.arange(4) < np.arange(10)[:, None] % 5, 0.099, 1.0)
    fields = {"qvel": (mj.nv,), "qacc_warmstart": (mj.nv,), "qfrc_applied": (mj.nv,), "xfrc_applied": (mj.nbody, 6)}
    memory.set({name: rng.normal(size=(10, *shape)).astype(np.float32) for name, shape in fields.items()})
    memory.set({"qpos": qpos.reshape(10, mj.nq)})
    memory.set({name: np.zeros(10, np.int32) for name in ("nstep", "world_status")})
    if rk_stage:
        memories.fill_runge_kutta(memory)
    return memory


def solvable(memory: Memory, kernel: Kernel, integrator: str, rk_stage: int) -> list[Argument]:
    """Carry out the stages before those of a kernel that solves; returns its arguments for the worlds with rows."""
    for before, slots in calls(memory, "", 0):
        if before.stages[0] == CONSTRAINT:
            break
        call(before, memory, slots)
    return arguments(kernel, memory, True, most_rows(memory), rk_scalars(integrator, rk_stage))


def assert_bits_of_stages(memory: Memory, kernel: Kernel, slots: list[Argument], scalars: dict[str, int]) -> None:
    """Call a tiled kernel, and its stages each as a kernel of its own: they write the same bits, and nothing beside."""
    alone, listed = memory.copy(), kernel.tiled_from != 0
    call(kernel, memory, slots)
    assert not memory.broken_guards()
    for single in map(catalogue.single, kernel.stages):
        call(single, alone, arguments(single, alone, listed, most_rows(memory) if listed else 0, scalars))
    written = [name for name in (*kernel.produced, *kernel.updates) if name not in WORKING]
    assert [name for name in written if changed(memory.arrays[name], alone.arrays[name]).any()] == []


@pytest.mark.parametrize("worlds", WORLDS)
@in_both
@of_motion
def test_the_motion_in_tiles_has_the_bits_of_its_stages(name: str, kernel: Kernel, dtype: str, worlds: int) -> None:
    memory = start(name, dtype, 0, worlds)
    assert_bits_of_stages(memory, kernel, arguments(kernel, memory), {})


@pytest.mark.parametrize("worlds", WORLDS)
@in_both
@integrations
@pytest.mark.parametrize("name", ["ant", "pile"])
def test_solving_in_tiles_has_the_bits_of_its_stages(
    name: str, integrator: str, rk_stage: int, dtype: str, worlds: int
) -> None:
    kernel, memory = finishing(integrator), start(name, dtype, rk_stage, worlds)
    slots = solvable(memory, kernel, integrator, rk_stage)
    assert memory.arrays["num_listed"][0] > 0
    assert_bits_of_stages(memory, kernel, slots, rk_scalars(integrator, rk_stage))


@in_both
@integrations
def test_a_tile_has_room_for_any_number_of_rows(integrator: str, rk_stage: int, dtype: str) -> None:
    """Also for more than the largest size class has in scratch."""
    kernel, memory = finishing(integrator), lying_boxes(dtype, rk_stage)
    slots = solvable(memory, kernel, integrator, rk_stage)
    assert most_rows(memory) > ROW_CLASSES[-1]
    assert_bits_of_stages(memory, kernel, slots, rk_scalars(integrator, rk_stage))


def in_blocks(name: str, dtype: str, worlds: int) -> Memory:
    """A memory with worlds that are solved by islands, in sampled states, with random forces and accelerations."""
    states, rng = sample(name), np.random.default_rng(5)
    model = load_table(compile_model(name))
    model.solve_by_islands(True)
    memory = Memory(model, dtype, worlds, 0, 0)
    memory.set({k: v[:worlds] for k, v in state_fields(model, states).items()})
    solved = ("qacc", "qacc_smooth", "qfrc_smooth", "qfrc_constraint")
    memory.set({field: rng.normal(size=(worlds, model.nv)).astype(np.float32) for field in solved})
    return memory


@pytest.mark.parametrize("worlds", WORLDS)
@in_both
@pytest.mark.parametrize("name", BLOCKS)
def test_the_motion_by_blocks_in_tiles_has_the_bits_of_its_stages(name: str, dtype: str, worlds: int) -> None:
    kernel, memory = tiles.MOTION_BLOCKS, in_blocks(name, dtype, worlds)
    assert memory.model.nblock > 1
    assert_bits_of_stages(memory, kernel, arguments(kernel, memory), {})


@pytest.mark.parametrize("worlds", WORLDS)
@in_both
@pytest.mark.parametrize("name", BLOCKS)
def test_integrating_by_blocks_in_tiles_has_the_bits_of_its_stage(name: str, dtype: str, worlds: int) -> None:
    motion, (_, kernel) = tiles.MOTION_BLOCKS, tiles.INTEGRATOR_KERNELS
    memory = in_blocks(name, dtype, worlds)
    call(motion, memory, arguments(motion, memory))
    before = memory.arrays["qpos"].copy()
    assert_bits_of_stages(memory, kernel, arguments(kernel, memory), {})
    assert changed(memory.arrays["qpos"], before).any()


@pytest.mark.parametrize("worlds", WORLDS)
@in_both
@pytest.mark.parametrize("name", ["actuators", "crates"])
def test_integrating_in_tiles_has_the_bits_of_its_stage(name: str, dtype: str, worlds: int) -> None:
    kernel, _ = tiles.INTEGRATOR_KERNELS
    memory = start(name, dtype, 0, worlds)
    for before, slots in calls(memory, "", 0):
        call(before, memory, slots)
    assert_bits_of_stages(memory, kernel, arguments(kernel, memory), {})


@pytest.mark.parametrize("worlds", WORLDS)
@in_both
@pytest.mark.parametrize("name", ["actuators", "tendons"])
def test_accelerations_in_tiles_have_the_bits_of_their_stages(name: str, dtype: str, worlds: int) -> None:
    memory = start(name, dtype, 0, worlds)
    for before, slots in calls(memory, "", 0):
        call(before, memory, slots)
    for field in tiles.ACCELERATION_KERNEL.produced:
        memory.arrays[field][...] = np.nan
    assert_bits_of_stages(memory, tiles.ACCELERATION_KERNEL, arguments(tiles.ACCELERATION_KERNEL, memory), {})
    assert np.isfinite(memory.arrays["qacc_smooth"]).all(axis=1).sum() == worlds


def run_sanitized(memory: Memory, kernel: Kernel, slots: list[Argument], edit: Edit = str) -> Result:
    """Carry out one call under the sanitizers, in which every buffer is an allocation of exactly its size."""
    if not supported(SANITIZERS[0]):
        pytest.skip(f"this compiler or machine lacks {SANITIZERS[0]}")
    program = build_tiled(kernel, memory.dtype, SANITIZERS, edit)
    recorded = Call(kernel.name, [slot for argument in slots for slot in slots_of(argument, 0)])
    lists = {f"{name}_0": memory.arrays[name].copy() for name in ("listed", "num_listed")}
    return execute(program, [kernel], memory.snapshot() | lists, [recorded])


def assert_sanitized(memory: Memory, kernel: Kernel, slots: list[Argument]) -> None:
    result = run_sanitized(memory, kernel, slots)
    assert not result.reports, result.reports[:3000]
    assert result.status == 0
    call(kernel, memory, slots)
    for name in FIELD:
        assert not changed(memory.arrays[name], result.buffers[name]).any(), name


@pytest.fixture
def no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Buffers end with the last world, and arenas with their last entry."""
    monkeypatch.setattr(harness, "BACK", 0)
    monkeypatch.setattr(harness, "SPARE", 0)


@pytest.mark.sanitizer
@pytest.mark.usefixtures("no_room")
@in_both
@pytest.mark.parametrize(("name", "kernel"), [("tendons", PLAIN[1]), ("tendons", PLAIN[3]), ("swimmer", FLUID[1])])
def test_the_motion_of_a_part_of_a_tile_stays_within_its_buffers(name: str, kernel: Kernel, dtype: str) -> None:
    for worlds in (1, 3, 17):
        memory = start(name, dtype, 0, worlds)
        assert_sanitized(memory, kernel, arguments(kernel, memory))


@pytest.mark.sanitizer
@pytest.mark.usefixtures("no_room")
@in_both
@pytest.mark.parametrize(("integrator", "rk_stage"), [("euler", 0), ("rk4", 3)])
def test_solving_a_part_of_a_tile_stays_within_its_buffers(integrator: str, rk_stage: int, dtype: str) -> None:
    kernel = finishing(integrator)
    for worlds in (1, 3, 17):
        memory = start("ant", dtype, rk_stage, worlds)
        assert_sanitized(memory, kernel, solvable(memory, kernel, integrator, rk_stage))
    memory = lying_boxes(dtype, rk_stage)
    assert_sanitized(memory, kernel, solvable(memory, kernel, integrator, rk_stage))


@pytest.mark.sanitizer
def test_a_tile_that_stores_its_repeated_worlds_is_reported() -> None:
    """Otherwise the tests above would not see an overrun."""

    def edit(source: str) -> str:
        good = "for (int k = 0; k < TILE; ++k) from[k] = field + size_t(worlds[k]) * words;"
        assert good in source
        return source.replace(good, good.replace("worlds[k]", "(worlds[0] + k)"))

    kernel, memory = tiles.MOTION, start("ant", "float32", 0, 3)
    result = run_sanitized(memory, kernel, arguments(kernel, memory), edit)
    assert "heap-buffer-overflow" in result.reports
