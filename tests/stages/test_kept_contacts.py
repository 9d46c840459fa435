"""Contacts that counting keeps for the narrowphase: those beyond its memory are searched again, to the same bits."""

from __future__ import annotations

from collections.abc import Callable

import mujoco
import numpy as np
import pytest

from simengine import Simulation, load_model
from simengine.model import build, load_table
from simengine.plan import contact_kernels
from tests.stages.harness import Memory, arguments, call
from tests.stages.harness_chain import single

WORLDS = 12

Place = Callable[[mujoco.MjModel, int], np.ndarray]


def heap() -> mujoco.MjModel:
    """Meshes, boxes and cylinders between each other and on a plane, all of which may touch."""
    rng = np.random.default_rng(5)
    points = rng.normal(size=(60, 3))
    points *= 0.1 / np.linalg.norm(points, axis=1, keepdims=True)
    shapes = ('type="mesh" mesh="rock"', 'type="box" size="0.08 0.06 0.05"', 'type="cylinder" size="0.06 0.05"')
    bodies = "".join(f"<body><freejoint/><geom {shapes[i % 3]}/></body>" for i in range(9))
    return mujoco.MjModel.from_xml_string(
        f'<mujoco><asset><mesh name="rock" vertex="{" ".join(f"{x:.5f}" for x in points.ravel())}"/></asset>'
        f'<worldbody><geom type="plane" size="1 1 1" pos="0 0 -0.15"/>{bodies}</worldbody></mujoco>'
    )


def states(mj: mujoco.MjModel, worlds: int) -> np.ndarray:
    rng = np.random.default_rng(6)
    qpos = np.zeros((worlds, mj.nbody - 1, 7))
    qpos[:, :, :3] = rng.uniform(-0.15, 0.15, size=(worlds, mj.nbody - 1, 3))
    qpos[:, :, 3:] = rng.normal(size=(worlds, mj.nbody - 1, 4))
    return qpos.reshape(worlds, -1)


def rocks_on_a_field() -> mujoco.MjModel:
    """Shapes of every kind, which collide with nothing but a height field."""
    heights = np.random.default_rng(7).uniform(size=(9, 9))
    shapes = ('type="box" size="0.1 0.08 0.05"', 'type="cylinder" size="0.06 0.1"', 'size="0.1"')
    bodies = "".join(f'<body><freejoint/><geom {shapes[i % 3]} contype="0"/></body>' for i in range(6))
    return mujoco.MjModel.from_xml_string(
        '<mujoco><asset><hfield name="land" nrow="9" ncol="9" size="0.5 0.5 0.1 0.1" '
        f'elevation="{" ".join(f"{x:.3f}" for x in heights.ravel())}"/></asset>'
        f'<worldbody><geom type="hfield" hfield="land" conaffinity="0"/>{bodies}</worldbody></mujoco>'
    )


def on_field(mj: mujoco.MjModel, worlds: int) -> np.ndarray:
    qpos = states(mj, worlds).reshape(worlds, -1, 7)
    qpos[:, :, :2] *= 2.5
    qpos[:, :, 2] = np.abs(qpos[:, :, 2]) + 0.03
    return qpos.reshape(worlds, -1)


def contacts(mj: mujoco.MjModel, dtype: str, placed: Place = states) -> list[tuple[np.ndarray, ...]]:
    with Simulation(load_model(mj), num_worlds=WORLDS, backend="host", dtype=dtype) as sim:
        sim.set_state(qpos=placed(mj, WORLDS))
        sim.forward()
        found = [sim.contacts(world) for world in range(WORLDS)]
        return [tuple(np.array(x) for x in (c.geom1, c.geom2, c.dist, c.pos, c.frame)) for c in found]


@pytest.mark.parametrize("dtype", ["float32", pytest.param("float64", marks=pytest.mark.slow)])
@pytest.mark.parametrize("room", [0, 1, 9, 10_000])
def test_contacts_do_not_depend_on_how_many_are_kept(monkeypatch: pytest.MonkeyPatch, room: int, dtype: str) -> None:
    mj = heap()
    normal = contacts(mj, dtype)
    assert max(len(world[0]) for world in normal) > 30
    monkeypatch.setattr(build, "MOST_KEPT", room)
    for world, (ours, theirs) in enumerate(zip(contacts(mj, dtype), normal, strict=True)):
        for mine, other in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(mine, other, err_msg=f"world {world}")


def assert_taken_over(mj: mujoco.MjModel, qpos: np.ndarray, kept: str, narrowphase: str) -> None:
    """Assert that the narrowphase of a pair type writes the contacts that counting kept, and finds none itself."""
    memory = Memory(load_table(mj), "float64", 1, 500, 0)
    memory.set({"qpos": qpos, "world_status": np.zeros(1, np.int32)})
    for name in ("kinematics", "collision_general", "scan"):
        call(single(name), memory, arguments(single(name), memory))
    memory.own(kept)[..., 0] += 1.0  # distances that no search finds
    memory.own("contact_dist")[:] = 0.0
    call(single(narrowphase), memory, arguments(single(narrowphase), memory))
    found = memory.own("contact_dist")[memory.own("contact_dist") != 0]
    assert len(found) > 10
    assert (found > 0.5).all()


def test_the_narrowphase_takes_what_counting_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    mj = heap()
    monkeypatch.setattr(build, "MOST_KEPT", 10_000)
    assert_taken_over(mj, states(mj, 1), "kept_contact", "convex")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("room", [0, 3, 17])
def test_contacts_with_height_fields_do_not_depend_on_how_many_are_kept(
    monkeypatch: pytest.MonkeyPatch, room: int, dtype: str
) -> None:
    mj = rocks_on_a_field()
    normal = contacts(mj, dtype, on_field)
    assert max(len(world[0]) for world in normal) > 20
    monkeypatch.setattr(build, "MOST_KEPT_PRISMS", room)
    for world, (ours, theirs) in enumerate(zip(contacts(mj, dtype, on_field), normal, strict=True)):
        for mine, other in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(mine, other, err_msg=f"world {world}")


def test_the_narrowphase_takes_contacts_with_height_fields_that_counting_kept() -> None:
    mj = rocks_on_a_field()
    assert_taken_over(mj, on_field(mj, 1), "kept_prism", "hfield")


@pytest.mark.parametrize(("parts", "room"), [(1, 256), (2, 256), (5, 256), (8, 256), (3, 9), (2, 0)])
def test_lanes_that_share_searches_count_and_keep_the_same(
    monkeypatch: pytest.MonkeyPatch, parts: int, room: int
) -> None:
    mj = heap()
    monkeypatch.setattr(build, "MOST_KEPT", room)
    found = []
    for kernels in ((single("collision_general"),), contact_kernels.SEARCHES):
        memory = Memory(load_table(mj), "float64", WORLDS, 500, 0)
        memory.set({"qpos": states(mj, WORLDS), "world_status": np.eye(1, WORLDS, 3, dtype=np.int32)[0]})
        for kernel in (single("kinematics"), *kernels):
            call(kernel, memory, arguments(kernel, memory, scalars={"parts": parts}))
        written = ("near_cand", "near_adr", "search_near", "search_found", "kept_contact", "ncon", "nefc", "counts")
        found.append({name: memory.own(name).copy() for name in written})
        assert memory.own("pair_tally")[:, 1].sum() > 10 * WORLDS
    for name, values in found[0].items():
        np.testing.assert_array_equal(values, found[1][name], err_msg=name)


def test_every_kernel_that_lists_pairs_keeps_contacts_with_height_fields() -> None:
    mj = rocks_on_a_field()
    found = []
    for kernels in ((single("collision_general"),), (contact_kernels.SEARCHES[0], contact_kernels.SEARCHES[-1])):
        memory = Memory(load_table(mj), "float64", WORLDS, 500, 0)
        memory.set({"qpos": on_field(mj, WORLDS), "world_status": np.zeros(WORLDS, np.int32)})
        for kernel in (single("kinematics"), *kernels, single("scan"), single("hfield")):
            call(kernel, memory, arguments(kernel, memory))
        found.append({name: memory.own(name).copy() for name in ("kept_prism", "contact_dist", "contact_pos")})
    assert (found[0]["kept_prism"] != 0).any(axis=(1, 2)).all()
    for name, values in found[0].items():
        np.testing.assert_array_equal(values, found[1][name], err_msg=name)


def test_models_without_such_pairs_keep_nothing() -> None:
    text = '<mujoco><worldbody>{}<body><freejoint/><geom type="box" size="0.1 0.1 0.1"/></body></worldbody></mujoco>'
    assert load_table(text.format('<geom type="plane" size="1 1 1"/>')).nkept == 0
    assert 0 < load_table(text.format('<geom type="cylinder" size="0.1 0.1"/>')).nkept <= build.MOST_KEPT
