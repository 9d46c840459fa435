"""Contacts of pairs of primitive geoms at many poses, near, deep and exactly aligned, against MuJoCo's."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from simengine.model import load_table
from simengine.model.pair_types import PAIR_TYPES
from tests.stages.harness import Memory, arguments, call
from tests.stages.harness_chain import single

MARGIN = 0.02
POSES = 240
PLANE = 'type="plane" size="1 1 1"'
SPHERE, CAPSULE = 'type="sphere" size="0.2"', 'type="capsule" size="0.15 0.3"'
CYLINDER, ELLIPSOID = 'type="cylinder" size="0.2 0.25"', 'type="ellipsoid" size="0.2 0.3 0.25"'
BOX, PLANK, CUBE = 'type="box" size="0.2 0.3 0.25"', 'type="box" size="0.5 0.1 0.03"', 'type="box" size="0.2 0.2 0.2"'
NEEDLE = 'type="capsule" size="0.04 0.6"'
PAIRS = [
    *((PLANE, other) for other in (BOX, CYLINDER, ELLIPSOID)),
    *((SPHERE, other) for other in (BOX, PLANK, CYLINDER)),
    *((CAPSULE, other) for other in (BOX, PLANK, CAPSULE)),
    *((NEEDLE, BOX), (BOX, PLANK), (CUBE, BOX), (CUBE, CUBE)),
]
QUARTERS = np.array([[1, 0, 0, 0], [0.5, 0.5, 0.5, 0.5], [0, 1, 0, 0], [0.5**0.5, 0.5**0.5, 0, 0]])

Contacts = tuple[np.ndarray, np.ndarray, np.ndarray]
"""dist (n,), pos (n, 3) and frame (n, 9) of the contacts of one pose."""


def two_bodies(first: str, second: str, margin: float) -> mujoco.MjModel:
    """Two free bodies, or a plane and one."""
    free = "" if first == PLANE else "<freejoint/>"
    return mujoco.MjModel.from_xml_string(
        f"<mujoco><worldbody><body>{free}<geom {first} margin='{margin}'/></body>"
        f"<body><freejoint/><geom {second}/></body></worldbody></mujoco>"
    )


def poses(mj: mujoco.MjModel, rng: np.random.Generator) -> np.ndarray:
    """(POSES, nq): any orientation, almost aligned ones, and quarter turns of each other; exact in float32."""
    qpos = np.zeros((POSES, mj.nq))
    reach = float(np.linalg.norm(mj.geom_size, axis=1).clip(max=0.6).sum()) if mj.nq > 7 else 0.4
    for i in range(POSES):
        turn = QUARTERS[i // 4 % 4] if i % 4 == 3 else rng.normal(size=4)
        other = (turn, rng.normal(size=4), turn + rng.normal(size=4) * 0.03, turn)[i % 4]
        at = rng.normal(size=3) * reach / 2.2
        qpos[i, -7:] = (*at, *other)
        if mj.nq > 7:
            qpos[i, :7] = (*rng.normal(size=3), *(QUARTERS[0] if i % 4 == 3 else turn))
            qpos[i, 7:10] += qpos[i, :3]
    return qpos.astype(np.float32).astype(np.float64)


def by_mujoco(mj: mujoco.MjModel, qpos: np.ndarray) -> list[Contacts]:
    """MuJoCo's contacts at each pose."""
    data, found = mujoco.MjData(mj), []
    for pose in qpos:
        data.qpos[:] = pose
        mujoco.mj_kinematics(mj, data)
        mujoco.mj_collision(mj, data)
        found.append(tuple(np.array(getattr(data.contact, name)) for name in ("dist", "pos", "frame")))
    return found


def by_kernels(mj: mujoco.MjModel, qpos: np.ndarray, dtype: str) -> list[Contacts]:
    """The kernels' contacts at each pose, a world each."""
    model = load_table(mj)
    memory = Memory(model, dtype, len(qpos), len(qpos) * model.nslot, 0)
    memory.set({"qpos": qpos, "world_status": np.zeros(len(qpos), np.int32)})
    for name in ("kinematics", "collision_general", "scan", PAIR_TYPES[int(model.cand_type[0])]):
        call(single(name), memory, arguments(single(name), memory))
    first = memory.own("con_adr")
    parts = [slice(int(a), int(a + n)) for a, n in zip(first, memory.own("ncon"), strict=True)]
    return [tuple(memory.own(f"contact_{name}")[part] for name in ("dist", "pos", "frame")) for part in parts]


def difference(ours: Contacts, theirs: Contacts) -> float:
    """Largest error of contacts in the order given."""
    pairs = zip(ours, theirs, strict=True)
    return max(float(np.abs(a.ravel() - b.ravel()).max(initial=0.0)) for a, b in pairs)


def sorted_contacts(contacts: Contacts) -> Contacts:
    """In the order of rounded positions, for boxes whose faces tie."""
    order = np.lexsort(np.round(contacts[1], 3).T)
    return tuple(values[order] for values in contacts)  # type: ignore[return-value]


@pytest.mark.parametrize(("first", "second"), PAIRS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_contacts_are_mujocos(first: str, second: str, dtype: str) -> None:
    """Number, order, dist, pos and frame.

    Faces of two boxes that are exactly parallel overlap equally, and a capsule along an edge of a box is nearest to it
    in many points: which of them decides, and with it the order, and whether corners on an edge count, is left to
    rounding. There the deepest contact must agree, and those of boxes as a set wherever they are as many.
    """
    mj = two_bodies(first, second, MARGIN)
    qpos = poses(mj, np.random.default_rng(5))
    tolerance = {"float64": 1e-8, "float32": 1e-4}[dtype]
    touching, ties = 0, 0
    for i, (ours, theirs) in enumerate(zip(by_kernels(mj, qpos, dtype), by_mujoco(mj, qpos), strict=True)):
        touching += len(theirs[0]) > 0
        if np.abs(theirs[0] - MARGIN).min(initial=1.0) < 1e-6:
            continue
        if len(ours[0]) == len(theirs[0]) and difference(ours, theirs) <= tolerance:
            continue
        assert i % 4 in (0, 3), f"pose {i}: {len(ours[0])} contacts, MuJoCo has {len(theirs[0])}"
        ties += 1
        assert abs(ours[0].min() - theirs[0].min()) <= tolerance
        if len(ours[0]) == len(theirs[0]) and first in (BOX, CUBE):
            assert difference(sorted_contacts(ours), sorted_contacts(theirs)) <= tolerance
    assert touching >= POSES / 6
    assert ties <= (0 if first in (PLANE, SPHERE) else POSES / 8), f"{ties} poses differ"


@pytest.mark.parametrize("gap", [1e-3, 1e-4, 1e-5])
def test_capsules_whose_axes_almost_meet_have_exact_normals_in_float32(gap: float) -> None:
    """The difference of the nearest points would be rounded to a part in a hundred of it."""
    mj = two_bodies(CAPSULE, CAPSULE, 0.0)
    rng, kept = np.random.default_rng(2), []
    for pose in poses(mj, rng)[1::2]:
        data = mujoco.MjData(mj)
        data.qpos[:] = pose
        mujoco.mj_kinematics(mj, data)
        axes = data.geom_xmat.reshape(2, 3, 3)[:, :, 2]
        across = np.cross(*axes)
        if np.linalg.norm(across) < 0.2:
            continue
        along = rng.uniform(-0.25, 0.25, size=2)
        pose[7:10] = pose[:3] + along @ axes + gap * across / np.linalg.norm(across)
        kept.append(pose.astype(np.float32).astype(np.float64))
    qpos = np.array(kept)
    assert len(qpos) > 50
    for ours, theirs in zip(by_kernels(mj, qpos, "float32"), by_mujoco(mj, qpos), strict=True):
        assert difference(ours, theirs) <= 1e-5


@pytest.mark.parametrize("gap", [1e-3, 1e-4, 1e-5])
@pytest.mark.parametrize("first", [SPHERE, CAPSULE])
def test_ends_that_almost_meet_an_axis_have_exact_normals_in_float32(first: str, gap: float) -> None:
    """Of bodies in one plane, as of planar mechanisms: there the axis alone decides the normal."""
    mj = two_bodies(first, CAPSULE, 0.0)
    rng, qpos = np.random.default_rng(4), np.zeros((60, 14))
    for pose in qpos:
        angle = rng.uniform(-3, 3)
        other = angle + rng.uniform(0.5, 2.6)  # from the one axis to the other, about y
        axes = [np.array([np.sin(a), 0.0, np.cos(a)]) for a in (angle, other)]
        across = np.array([axes[1][2], 0.0, -axes[1][0]])
        pose[:3] = *rng.normal(size=2), 0.0
        pose[1:3] = 0.0, pose[1]
        end = pose[:3] + (0.3 * axes[0] if first == CAPSULE else 0.0)
        # on the far side of it, so that the nearest point of the first capsule is its end
        beyond = gap * (-across if across @ axes[0] > 0 else across)
        pose[7:10] = end - beyond - rng.uniform(-0.2, 0.2) * axes[1]
        pose[[3, 5]], pose[[10, 12]] = ([np.cos(a / 2), np.sin(a / 2)] for a in (angle, other))
    qpos = qpos.astype(np.float32).astype(np.float64)
    for ours, theirs in zip(by_kernels(mj, qpos, "float32"), by_mujoco(mj, qpos), strict=True):
        assert difference(ours, theirs) <= 1e-5


@pytest.mark.parametrize(("beyond", "contacts"), [(1e-6, 5), (6.5e-8, 5), (6.2e-8, 4), (1e-9, 4)])
@pytest.mark.parametrize("side", range(4))
def test_two_corners_of_a_face_almost_in_one_place_are_one_contact(beyond: float, contacts: int, side: int) -> None:
    """A corner of the upper box is just beyond a side of the lower one's face, which cuts it into two corners: one for
    MuJoCo where they are nearer than 1e-7 of the half diagonal of that face."""
    mj = two_bodies('type="box" size="0.9 0.9 0.1"', 'type="box" size="0.1 0.1 0.1"', 0.0)
    pose = np.zeros(14)
    pose[3], pose[9], pose[10], pose[13] = 1.0, 0.19, np.cos(np.pi / 8), np.sin(np.pi / 8)
    along = (1.0, -1.0)[side // 2]
    pose[7:9] = np.where(np.arange(2) == side % 2, along * (0.9 - 0.1 * 2**0.5 + beyond), 0.3)
    ours, theirs = by_kernels(mj, pose[None], "float64")[0], by_mujoco(mj, pose[None])[0]
    assert len(theirs[0]) == contacts
    assert len(ours[0]) == contacts
    assert difference(ours, theirs) <= 1e-8


def test_flush_boxes_touch_in_the_corners_of_what_they_share() -> None:
    """Equal boxes, shifted along one axis and turned a little about another, whose ends stay flush: rounding must not
    put a corner beyond these, nor leave one out."""
    mj = two_bodies(BOX, BOX, 0.0)
    rng = np.random.default_rng(3)
    qpos = np.zeros((200, 14))
    for pose in qpos:
        pose[3:7] = rng.normal(size=4)
        pose[3:7] /= np.linalg.norm(pose[3:7])
        turn, shift, axes = np.zeros(4), np.zeros(3), np.zeros(9)
        mujoco.mju_axisAngle2Quat(turn, np.array([0.0, 0.0, 1.0]), rng.uniform(-0.1, 0.1))
        mujoco.mju_mulQuat(pose[10:], pose[3:7], turn)
        mujoco.mju_rotVecQuat(shift, np.array([0.3, rng.uniform(-0.2, 0.2), 0.0]), pose[3:7])
        pose[:3] = rng.normal(size=3)
        pose[7:10] = pose[:3] + shift
    for pose, (dist, pos, _) in zip(qpos, by_kernels(mj, qpos, "float64"), strict=True):
        mujoco.mju_quat2Mat(axes, pose[3:7])
        height = (pos - pose[:3]) @ axes.reshape(3, 3)[:, 2]
        assert len(dist) == 4
        np.testing.assert_allclose(np.sort(height), np.repeat([-0.25, 0.25], 2), atol=1e-12)
