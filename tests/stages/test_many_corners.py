"""Faces of hundreds of corners that lie flat on each other, against MuJoCo."""

from __future__ import annotations

from functools import cache

import mujoco
import numpy as np
import pytest

from simengine import Simulation, load_model
from simengine.model.pairs import FACE_CORNERS

STATES = 40
CASES = ((215, 0), (400, 0), (215, 100), (400, 215), (400, 400))
"""Corners of the upper prism's faces and of the lower one's, which is a box where there are none."""
ROOM = (512, 512, 512, 1024, 1024)
SAME = 1e-5  # [m]; where corners differ by more, others were chosen


def prism(number: int, seed: int) -> str:
    """Vertices of an elliptic prism with so many irregular sides."""
    rng = np.random.default_rng(seed)
    angle = 2 * np.pi * (np.arange(number) + rng.uniform(-0.5, 0.5, number)) / number
    around = np.column_stack([0.2 * np.cos(angle), 0.11 * np.sin(angle)])
    return " ".join(f"{x:.7f} {y:.7f} {z}" for z in (-0.05, 0.05) for x, y in around)


@cache
def model(upper: int, lower: int) -> mujoco.MjModel:
    """A free prism on a fixed one or on a wide box, whose upper side is at 5 cm."""
    meshes = {"upper": upper, **({"lower": lower} if lower else {})}
    assets = "".join(f'<mesh name="{name}" vertex="{prism(n, i)}"/>' for i, (name, n) in enumerate(meshes.items()))
    below = 'type="mesh" mesh="lower"' if lower else 'type="box" size="0.3 0.15 0.05"'
    return mujoco.MjModel.from_xml_string(
        f'<mujoco><option ccd_tolerance="1e-12" ccd_iterations="500"/><asset>{assets}</asset><worldbody>'
        f'<geom {below}/><body><freejoint/><geom type="mesh" mesh="upper" mass="1"/></body></worldbody></mujoco>'
    )


@cache
def poses() -> np.ndarray:
    """States (n, 7), exact in float32: sunk by up to a centimetre, tilted by up to 0.01 rad, a third not turned."""
    rng, qpos = np.random.default_rng(3), np.zeros((STATES, 7))
    qpos[:, :2] = rng.uniform(-1, 1, (STATES, 2)) * (0.12, 0.07)
    qpos[:, 2] = 0.1 - rng.uniform(0.0005, 0.01, STATES)
    for i, pose in enumerate(qpos):
        turn = rng.uniform(-3, 3) if i % 3 else 0.0
        mujoco.mju_euler2Quat(pose[3:], np.array([*rng.uniform(-0.01, 0.01, 2), turn]), "XYZ")
    return qpos.astype(np.float32).astype(np.float64)


def area(corner: np.ndarray) -> float:
    """Of the shadow of a quadrilateral (4, 3), by its diagonals."""
    one, other = corner[2] - corner[0], corner[3] - corner[1]
    return float(abs(one[0] * other[1] - one[1] * other[0]) / 2)


def compare(upper: int, lower: int, backend: str, dtype: str, number: int) -> tuple[int, float]:
    """How many states have other corners than MuJoCo chooses; the largest share by which theirs span less.

    The depths and normals of all states are compared here, and positions and accelerations where corners are the same.
    """
    mj, qpos = model(upper, lower), poses()[:number]
    data = mujoco.MjData(mj)
    exact = dtype == "float64"
    sim = Simulation(load_model(mj), num_worlds=number, backend=backend, dtype=dtype)
    sim.set_state(qpos=qpos)
    sim.forward()
    others, less = 0, 0.0
    for world, state in enumerate(qpos):
        data.qpos[:], data.qacc_warmstart[:] = state, 0
        mujoco.mj_forward(mj, data)
        ours, theirs = sim.contacts(world), data.contact
        assert ours.ncon == data.ncon == 4
        np.testing.assert_allclose(ours.frame.reshape(-1, 9)[:, :3], theirs.frame[:, :3], atol=1e-12 if exact else 1e-6)
        less = max(less, 1 - area(np.asarray(ours.pos)) / area(theirs.pos))
        if np.abs(ours.pos - theirs.pos).max() > SAME:
            others += 1
            continue
        np.testing.assert_allclose(ours.pos, theirs.pos, atol=1e-12 if exact else SAME)
        np.testing.assert_allclose(ours.dist, theirs.dist, atol=1e-12 if exact else 1e-6)
        qacc = np.asarray(sim.qacc[world])
        np.testing.assert_allclose(qacc, data.qacc, atol=(1e-10 if exact else 1e-3) * np.abs(data.qacc).max())
    sim.close()
    return others, less


@pytest.mark.parametrize(
    ("upper", "lower"),
    [
        # kernels with twice the room differ in that number alone, and run in float32 below
        pytest.param(*case, marks=pytest.mark.slow if room == 1024 else ())
        for case, room in zip(CASES, ROOM, strict=True)
    ],
)
def test_host_agrees_with_mujoco(upper: int, lower: int) -> None:
    others, less = compare(upper, lower, "host", "float64", STATES)
    assert others == 0
    assert less < 1e-10


@pytest.mark.parametrize(("upper", "lower"), CASES)
def test_corners_of_float32_span_as_much(upper: int, lower: int) -> None:
    """Of hundreds of corners many span nearly the same area, and rounding chooses among them."""
    others, less = compare(upper, lower, "host", "float32", STATES)
    assert others <= 2
    assert less < 1e-5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("upper", "lower", "dtype"),
    [(215, 0, "float64"), (400, 215, "float32")],
)
def test_jax_agrees_with_mujoco(upper: int, lower: int, dtype: str) -> None:
    """The slow case adds two meshes and single precision."""
    others, less = compare(upper, lower, "jax", dtype, 12)
    assert others <= (0 if dtype == "float64" else 1)
    assert less < (1e-10 if dtype == "float64" else 1e-5)


def test_only_such_models_have_kernels_with_more_room() -> None:
    for (upper, lower), room in zip(CASES, ROOM, strict=True):
        sim = Simulation(load_model(model(upper, lower)), num_worlds=2, backend="host")
        sim.forward()
        names = {entry.call.name for entry in sim.schedule.kernel_list}
        assert {f"only_collision_touch_{room}", f"convex_{room}"} <= names
        sim.close()
    sim = Simulation(load_model(model(100, 80)), num_worlds=2, backend="host")
    sim.forward()
    assert {"only_collision_touch", "convex"} <= {entry.call.name for entry in sim.schedule.kernel_list}
    sim.close()


def test_found_pairs_have_the_same_contacts() -> None:
    """Where pairs are found anew in every step, other kernels look for contacts."""
    listed, found = load_model(model(400, 215)), load_model(model(400, 215))
    found.table.solve_by_islands(True)
    found.table.find_pairs(True)
    contacts = []
    for table in (listed, found):
        sim = Simulation(table, num_worlds=8, backend="host")
        sim.set_state(qpos=poses()[:8])
        sim.forward()
        contacts.append([sim.contacts(world) for world in range(8)])
        sim.close()
    for ours, theirs in zip(*contacts, strict=True):
        assert ours.ncon == 4
        np.testing.assert_array_equal(ours.pos, theirs.pos)


@pytest.mark.slow
def test_faces_on_planes_need_no_room() -> None:
    """A plane clips nothing: the corners that span a face are known beforehand."""
    mj = mujoco.MjModel.from_xml_string(
        f'<mujoco><asset><mesh name="wide" vertex="{prism(1100, 0)}"/></asset><worldbody>'
        '<geom type="plane" size="1 1 1"/><body><freejoint/><geom type="mesh" mesh="wide"/></body></worldbody></mujoco>'
    )
    assert load_model(mj).table.face_corners == FACE_CORNERS[0]
