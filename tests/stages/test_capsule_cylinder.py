"""Capsules and cylinders on the host, for which there is no search: against MuJoCo, and against dense minimisation."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import mujoco
import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from simengine.model import load_table
from tests.stages.contacts import Found, by_host, by_mujoco
from tests.stages.harness import Memory, arguments
from tests.stages.harness_chain import single
from tests.stages.harness_sanitizer import build, execute, record, supported

COUNT = 60
MARGIN = 0.02
SIZES = {
    "stout": (0.06, 0.1, 0.1, 0.12),
    "pusher": (0.02, 0.1, 0.05, 0.05),
    "disc": (0.01, 0.05, 0.2, 0.02),
    "rod": (0.03, 0.2, 0.02, 0.3),
}
"""Radius and half length of the capsule, radius and half height of the cylinder [m]."""

TOLERANCE = {"float64": (1e-9, 5e-6, 2e-5), "float32": (3e-7, 5e-5, 1e-4)}
"""Of dist [m], pos [m] and normal. MuJoCo's own normals are no better than 1e-5, nor its positions than 2e-6."""


class Size(NamedTuple):
    """Radius and half length of the capsule, radius and half height of the cylinder [m]."""

    ball: float
    length: float
    radius: float
    height: float


@cache
def model(size: Size) -> mujoco.MjModel:
    """A fixed tilted cylinder and a free capsule, with one contact. MuJoCo's search iterates until it converges."""
    return mujoco.MjModel.from_xml_string(
        f"""<mujoco><option ccd_tolerance="1e-12" ccd_iterations="500"><flag multiccd="disable"/></option>
        <default><geom margin="{MARGIN / 2}"/></default><worldbody>
        <geom type="cylinder" size="{size.radius} {size.height}" pos="0.1 -0.2 0.3" euler="30 50 70"/>
        <body><freejoint/><geom type="capsule" size="{size.ball} {size.length}"/></body></worldbody></mujoco>"""
    )


def unit(v: np.ndarray) -> np.ndarray:
    return v / np.linalg.norm(v)


def across(rng: np.random.Generator, normal: np.ndarray) -> np.ndarray:
    """A random unit vector perpendicular to a unit vector."""
    return unit(np.cross(normal, rng.normal(size=3)))


def outward(rng: np.random.Generator, normal: np.ndarray) -> np.ndarray:
    """A random unit vector less than 80 degrees from a unit vector."""
    return unit(normal + rng.uniform(0, 5) * across(rng, normal))


def touch(rng: np.random.Generator, size: Size, where: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """A nearest point of the cylinder, the normal there, the capsule's axis, and its position that is nearest [m]."""
    angle = rng.uniform(-3.1, 3.1)
    radial, up = np.array([np.cos(angle), np.sin(angle), 0.0]), np.array([0.0, 0.0, rng.choice([-1.0, 1.0])])
    side = size.radius * radial + rng.uniform(-0.8, 0.8) * size.height * up
    cap = size.radius * rng.uniform(0, 0.9) * radial + size.height * up
    rim = size.radius * radial + size.height * up
    lean = rng.uniform(0.1, 1.4)
    between, middle = np.cos(lean) * radial + np.sin(lean) * up, rng.uniform(-0.8, 0.8) * size.length
    match where:
        case "side":
            return side, radial, across(rng, radial), middle
        case "side, square":
            return side, radial, np.cross(radial, up), middle
        case "side, end":
            return side, radial, outward(rng, radial), -size.length
        case "side, end on":
            return side, radial, radial, -size.length
        case "cap, end":
            return cap, up, outward(rng, up), -size.length
        case "cap, end on":
            return cap, up, up, -size.length
        case "rim":
            return rim, between, across(rng, between), middle
        case "rim, end":
            return rim, between, outward(rng, between), -size.length
    raise ValueError(where)


TOUCHING = ("side", "side, square", "side, end", "side, end on", "cap, end", "cap, end on", "rim", "rim, end")


def cylinder_pose(mj: mujoco.MjModel) -> tuple[np.ndarray, np.ndarray]:
    data = mujoco.MjData(mj)
    mujoco.mj_kinematics(mj, data)
    return data.geom_xpos[0].copy(), data.geom_xmat[0].reshape(3, 3).copy()


def placed(mj: mujoco.MjModel, centres: np.ndarray, axes: np.ndarray) -> np.ndarray:
    """qpos (n, 7) of capsules with centres (n, 3) [m] and axes (n, 3) in the cylinder's frame, exact in float32."""
    pos, mat = cylinder_pose(mj)
    qpos = np.zeros((len(centres), 7))
    for q, centre, axis in zip(qpos, centres, axes, strict=True):
        q[:3] = pos + mat @ centre
        mujoco.mju_quatZ2Vec(q[3:], mat @ axis)
    return qpos.astype(np.float32).astype(np.float64)


def touching(size: Size, where: str, low: float, high: float) -> np.ndarray:
    """qpos of capsules at distances between `low` and `high` [m]."""
    rng = np.random.default_rng(7)
    found = [(*touch(rng, size, where), rng.uniform(low, high)) for _ in range(COUNT)]
    centres = [point + (size.ball + gap) * normal - at * axis for point, normal, axis, at, gap in found]
    return placed(model(size), np.array(centres), np.array([axis for _, _, axis, *_ in found]))


def anywhere(size: Size, reach: float, count: int = 4 * COUNT) -> np.ndarray:
    """qpos of capsules in any orientation whose centres are up to `reach` sizes from the cylinder's."""
    rng = np.random.default_rng(8)
    spread = np.array([size.radius, size.radius, size.height]) * reach
    axes = np.array([unit(v) for v in rng.normal(size=(count, 3))])
    return placed(model(size), rng.uniform(-1, 1, size=(count, 3)) * spread, axes)


def compare(ours: list[Found], theirs: list[Found], dtype: str) -> int:
    """Check that the contacts are the same, and return how many there are."""
    number = 0
    for state, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        if np.abs(b.dist - MARGIN).min(initial=1.0) < 1e-6:
            continue
        assert len(a.dist) == len(b.dist), state
        number += len(b.dist)
        for x, y, most in zip(a[1:], b[1:], TOLERANCE[dtype], strict=True):
            np.testing.assert_allclose(x[..., :3], y[..., :3], rtol=0, atol=most, err_msg=f"state {state}")
    return number


@cache
def touching_in_mujoco(size: Size, where: str) -> tuple[np.ndarray, list[Found]]:
    """States in which capsules are within their margin, touch lightly, and lie deep, and MuJoCo's contacts."""
    gaps = ((0.0, MARGIN), (-1e-4, 1e-4), (-0.9 * size.ball, 0.0))
    qpos = np.concatenate([touching(size, where, low, high) for low, high in gaps])
    return qpos, by_mujoco(model(size), qpos)


@cache
def anywhere_in_mujoco(size: Size, reach: float) -> tuple[np.ndarray, list[Found]]:
    """States of capsules in any orientation, and MuJoCo's contacts."""
    qpos = anywhere(size, reach)
    return qpos, by_mujoco(model(size), qpos)


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize("where", TOUCHING)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_capsules_that_touch_agree_with_mujoco(dtype: str, where: str, name: str) -> None:
    size = Size(*SIZES[name])
    qpos, theirs = touching_in_mujoco(size, where)
    ours = by_host(model(size), qpos, dtype)
    for first in range(0, len(qpos), COUNT):
        of_gap = slice(first, first + COUNT)
        assert compare(ours[of_gap], theirs[of_gap], dtype) > 0.9 * COUNT


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_capsules_anywhere_agree_with_mujoco(dtype: str, name: str) -> None:
    size = Size(*SIZES[name])
    for reach, least in ((0.9, COUNT), (2.5, COUNT // 4)):
        qpos, theirs = anywhere_in_mujoco(size, reach)
        assert compare(by_host(model(size), qpos, dtype), theirs, dtype) > least


def local(size: Size, qpos: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Centre and axis of the capsule in the cylinder's frame."""
    data = mujoco.MjData(model(size))
    data.qpos[:] = qpos
    mujoco.mj_kinematics(model(size), data)
    pos, mat = data.geom_xpos[0], data.geom_xmat[0].reshape(3, 3)
    return mat.T @ (data.geom_xpos[1] - pos), mat.T @ data.geom_xmat[1].reshape(3, 3)[:, 2]


def distance(size: Size, centre: np.ndarray, axis: np.ndarray) -> float:
    """Distance of the segment from the cylinder, which is convex along the segment [m]."""

    def at(t: float) -> float:
        x, y, z = centre + t * axis
        return float(np.hypot(max(np.hypot(x, y) - size.radius, 0), max(abs(z) - size.height, 0)))

    ends = min(at(-size.length), at(size.length))
    return min(ends, minimize_scalar(at, bounds=(-size.length, size.length), options={"xatol": 1e-12}).fun)


def depth(size: Size, centre: np.ndarray, axis: np.ndarray, ways: np.ndarray) -> np.ndarray:
    """How far (n,) the segment must move along unit vectors (n, 3) to leave the cylinder [m]."""
    solid = size.radius * np.hypot(ways[:, 0], ways[:, 1]) + size.height * np.abs(ways[:, 2])
    return np.asarray(solid + size.length * np.abs(ways @ axis) - ways @ centre)


def sphere(count: int) -> np.ndarray:
    """Unit vectors (count, 3) that cover the sphere evenly."""
    k = np.arange(count) + 0.5
    z, turn = 1 - 2 * k / count, np.pi * (1 + 5**0.5) * k
    return np.column_stack([np.sqrt(1 - z * z) * np.cos(turn), np.sqrt(1 - z * z) * np.sin(turn), z])


def is_exact(
    size: Size, centre: np.ndarray, axis: np.ndarray, found: Found, pose: tuple[np.ndarray, np.ndarray]
) -> bool:
    """Whether a contact is midway between a point of the capsule and one of the cylinder that its normal joins."""
    pos, mat = pose
    normal, at = found.frame[0, :3] @ mat, (found.pos[0] - pos) @ mat
    core, surface = at - (found.dist[0] / 2 + size.ball) * normal, at + found.dist[0] / 2 * normal
    along = np.clip((core - centre) @ axis, -size.length, size.length)
    solid = np.hypot(*surface[:2]) < size.radius + 1e-9 and abs(surface[2]) < size.height + 1e-9
    return bool(solid and np.linalg.norm(centre + along * axis - core) < 1e-9)


@pytest.mark.parametrize("name", SIZES)
def test_distances_are_the_least_of_all_points_and_depths_of_all_directions(name: str) -> None:
    size, ways, met = Size(*SIZES[name]), sphere(20_000), {"apart": 0, "deep": 0}
    pose = cylinder_pose(model(size))
    for reach in (0.9, 2.0):
        qpos = anywhere(size, reach)
        for q, found in zip(qpos, by_host(model(size), qpos, "float64"), strict=True):
            centre, axis = local(size, q)
            least = distance(size, centre, axis)
            assert len(found.dist) == (least <= size.ball + MARGIN)
            if not len(found.dist):
                continue
            cores, away = found.dist[0] + size.ball, -found.frame[:, :3] @ pose[1]
            assert abs(depth(size, centre, axis, away)[0] + cores) < 1e-12
            assert is_exact(size, centre, axis, found, pose)
            met["apart" if least > 0 else "deep"] += 1
            if least > 0:
                assert abs(cores - least) < 1e-9
                continue
            near = away + 0.01 * sphere(200)
            near /= np.linalg.norm(near, axis=1)[:, None]
            assert -cores < depth(size, centre, axis, np.concatenate([ways, near])).min() + 1e-12
    assert min(met.values()) >= 20, met


@pytest.mark.parametrize("lies", ["upright", "flat"])
@pytest.mark.parametrize("gap", [0.01, -0.02, -0.09])
def test_of_a_line_of_nearest_points_the_middle_is_the_contact(gap: float, lies: str) -> None:
    """A capsule parallel to the axis beside the side, or to a cap: apart, touching, and with its core in the cylinder.

    The poses are parallel up to the rounding errors of float32.
    """
    size, rng = Size(*SIZES["stout"]), np.random.default_rng(9)
    expected, poses = [], []
    for _ in range(COUNT):
        angle, shift = rng.uniform(-3, 3), rng.uniform(-0.15, 0.15)
        radial, up = np.array([np.cos(angle), np.sin(angle), 0.0]), np.array([0.0, 0.0, 1.0])
        normal, axis = (radial, up) if lies == "upright" else (up, radial)
        half = size.height if lies == "upright" else size.radius
        surface = size.radius if lies == "upright" else size.height
        ends = np.clip([shift - size.length, shift + size.length], -half, half)
        poses.append(((surface + size.ball + gap) * normal + shift * axis, axis))
        expected.append((surface + gap / 2) * normal + ends.mean() * axis)
    mj = model(size)
    qpos = placed(mj, np.array([c for c, _ in poses]), np.array([a for _, a in poses]))
    pos, mat = cylinder_pose(mj)
    for found, wanted in zip(by_host(mj, qpos, "float32"), expected, strict=True):
        assert abs(found.dist[0] - gap) < 3e-7
        np.testing.assert_allclose((found.pos[0] - pos) @ mat, wanted, atol=3e-6)


SANITIZERS = "-fsanitize=address,undefined,float-divide-by-zero"


@pytest.mark.sanitizer
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_sanitizers_report_nothing(dtype: str) -> None:
    """Also where axes meet, or are one, or the centres are."""
    if not supported(SANITIZERS):
        pytest.skip(f"this compiler or machine lacks {SANITIZERS}")
    size = Size(*SIZES["pusher"])
    mj, up, along = model(size), np.array([0.0, 0.0, 1.0]), np.array([1.0, 0.0, 0.0])
    special = [(0 * up, up), (0 * up, along), (0.01 * up, up), (0.01 * up, along), (0.01 * along, up), (0.15 * up, up)]
    qpos = np.concatenate([anywhere(size, 0.9), placed(mj, *(np.array(v) for v in zip(*special, strict=True)))])
    table = load_table(mj)
    memory = Memory(table, dtype, len(qpos), len(qpos) * table.nslot, 0)
    memory.set({"qpos": qpos, "world_status": np.zeros(len(qpos), np.int32)})
    kernels = [single(name) for name in ("kinematics", "collision_general", "scan", "convex")]
    buffers, recorded = record(memory, ((kernel, arguments(kernel, memory)) for kernel in kernels))
    result = execute(
        build(kernels, dtype, 1, (SANITIZERS, "-fno-sanitize-recover=all", "-O0")), kernels, buffers, recorded
    )
    assert not result.reports, result.reports[:3000]
    assert result.status == 0
    number = int(memory.own("ncon").sum())
    assert number > len(qpos) / 2
    for field in ("contact_dist", "contact_pos", "contact_frame"):
        ours, theirs = result.buffers[field][:number], memory.own(field)[:number]
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-5, err_msg=field)
