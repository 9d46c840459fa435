"""Shapes on a face of another, whose contacts need no search, against MuJoCo's search."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from simengine import Simulation, load_model
from simengine.backends import select
from simengine.plan import catalogue
from tests.gpu.compare import to_host
from tests.helpers.cuda_on_host.backend import FiberBackend
from tests.helpers.cuda_on_host.resident import FiberResident
from tests.stages.harness import Memory, arguments, call
from tests.stages.harness_chain import single

WEDGE = "-.05 -.04 0 .05 -.04 0 .05 .04 0 -.05 .04 0 -.05 -.04 .025 .05 -.04 .045 .05 .04 .045 -.05 .04 .025"
OWNERS = {
    "box": 'type="box" size="0.1 0.08 0.03"',
    "cylinder": 'type="cylinder" size="0.1 0.03"',
    "mesh": 'type="mesh" mesh="slab"',
}
OTHERS = {
    "wedge": 'type="mesh" mesh="wedge"',
    "ellipsoid": 'type="ellipsoid" size="0.03 0.02 0.025"',
    "cylinder": 'type="cylinder" size="0.02 0.03"',
}
SLAB = "-.1 -.08 -.03 .1 -.08 -.03 .1 .08 -.03 -.1 .08 -.03 -.08 -.06 .03 .08 -.06 .03 .08 .06 .03 -.08 .06 .03"
STATES = 60
MARGIN = 0.01
TOLERANCE = {"float64": 1e-9, "float32": 1e-7}
ROUND = 3e-6  # [m]; by so much MuJoCo's depths of cylinders are off
PAIRS = [(owner, other) for owner in OWNERS for other in OTHERS if (owner, other) != ("cylinder", "cylinder")]


def model(owner: str, other: str, number: int = 1) -> str:
    """MJCF of a fixed shape and of free ones, which touch only that."""
    free = "".join(
        f'<body pos="{0.05 * i} 0 0.2"><freejoint/><geom {OTHERS[other]} contype="2" conaffinity="1"/></body>'
        for i in range(number)
    )
    return f"""<mujoco><option ccd_tolerance="1e-12" ccd_iterations="500"/>
      <asset><mesh name="wedge" vertex="{WEDGE}"/><mesh name="slab" vertex="{SLAB}"/></asset>
      <default><geom margin="{MARGIN / 2}"/></default>
      <worldbody><geom {OWNERS[owner]} contype="1" conaffinity="2"/>{free}</worldbody></mujoco>"""


def poses(seed: int) -> np.ndarray:
    """Poses (n, 7) above the fixed shape, over its rim, and inside it: half of them almost upright."""
    rng = np.random.default_rng(seed)
    qpos = np.concatenate([rng.uniform(-1, 1, (STATES, 3)) * (0.12, 0.1, 0.03), rng.normal(size=(STATES, 4))], axis=1)
    qpos[:, 2] += 0.045
    qpos[::2, 4:] *= 10.0 ** rng.uniform(-5, -1, (STATES // 2, 1))
    return qpos


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("owner", "other"), PAIRS)
def test_the_nearest_contact_is_as_far_as_in_mujoco(owner: str, other: str, dtype: str) -> None:
    mj = mujoco.MjModel.from_xml_string(model(owner, other))
    data, qpos = mujoco.MjData(mj), poses(3)
    touching, tolerance = 0, ROUND if "cylinder" in (owner, other) else TOLERANCE[dtype]
    with Simulation(load_model(mj), STATES, backend="host", dtype=dtype) as sim:
        sim.set_state(qpos=qpos)
        sim.forward()
        for world, state in enumerate(qpos):
            data.qpos[:] = state
            mujoco.mj_fwdPosition(mj, data)
            if data.ncon and data.contact.dist.min() > 0.98 * MARGIN:
                continue  # rounding may decide
            ours = sim.contacts(world)
            assert (ours.ncon > 0) == (data.ncon > 0), world
            touching += data.ncon > 0
            if data.ncon:
                assert abs(np.min(ours.dist) - data.contact.dist.min()) < tolerance, world
    assert touching > STATES // 2


def contacts_of(mj: mujoco.MjModel, qpos: np.ndarray, backend: str) -> list[np.ndarray]:
    """Distances, places and normals (contacts, 7) of each world."""
    with Simulation(load_model(mj), len(qpos), backend=backend, dtype="float32") as sim:
        sim.set_state(qpos=qpos)
        sim.forward()
        found = [sim.contacts(world) for world in range(len(qpos))]
        frames = [np.asarray(c.frame).reshape(-1, 9)[:, :3] for c in found]
        return [np.column_stack([c.dist, np.reshape(c.pos, (-1, 3)), f]) for c, f in zip(found, frames, strict=True)]


@pytest.mark.parametrize(
    ("owner", "other"), [*((o, k) for o in ("box", "cylinder") for k in OTHERS), ("cylinder", "box")]
)
def test_on_sides_and_caps_a_gpu_finds_the_contacts_of_a_cpu(
    owner: str, other: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also their number and order, of shapes in any pose and of those that lie flat."""
    monkeypatch.setitem(OTHERS, "box", 'type="box" size="0.02 0.03 0.025"')
    monkeypatch.setitem(select._MAKERS, "cuda", FiberBackend)
    mj = mujoco.MjModel.from_xml_string(model(owner, other))
    lying = poses(5)[: STATES // 2]
    lying[:, 2:] = np.column_stack([np.linspace(0.05, 0.062, len(lying)), np.ones((len(lying), 1)) * (1, 0, 0, 0)])
    lying[:, 6] = np.linspace(-1, 1, len(lying))
    qpos = np.concatenate([poses(4), lying])
    wanted, found = (contacts_of(mj, qpos, backend) for backend in ("host", "cuda"))
    assert sum(len(contacts) > 1 for contacts in wanted) > 9 or other == "ellipsoid"
    for world, (one, ours) in enumerate(zip(wanted, found, strict=True)):
        assert len(one) == len(ours), world
        np.testing.assert_allclose(ours, one, atol=1e-4, err_msg=f"world {world}")


TOWER = """<mujoco><worldbody><geom type="plane" size="2 2 0.1"/><replicate count="4" offset="0 0 0.1">
  <body pos="0 0 0.05"><freejoint/><geom type="cylinder" size="0.1 0.05"/></body></replicate></worldbody></mujoco>"""


def test_cylinders_in_a_tower_need_no_search_on_a_gpu() -> None:
    """Each rests on the one below, or that on it, unless the lowest point is near the rims of both."""
    mj, worlds = mujoco.MjModel.from_xml_string(TOWER), 40
    rng = np.random.default_rng(2)
    qpos = np.tile(mj.qpos0, (worlds, 1)).reshape(worlds, 4, 7)
    qpos[:, :, :3] += rng.uniform(-1, 1, (worlds, 4, 3)) * (1e-2, 1e-2, 2e-5) - np.arange(4)[:, None] * (0, 0, 1e-4)
    qpos[:, :, 4:] += rng.uniform(-1, 1, (worlds, 4, 3)) * 5e-4
    memory = Memory(load_model(mj).table, "float32", worlds, 100 * worlds, 0)
    memory.set({"qpos": qpos.reshape(worlds, -1), "world_status": np.zeros(worlds, np.int32)})
    call(single("kinematics"), memory, arguments(single("kinematics"), memory))
    away = FiberResident(memory)
    for kernel in catalogue.SEARCHES[:2]:
        values = arguments(kernel, memory, scalars={"parts": 1})
        away.call(kernel, values, worlds_a_block=4, parts=1 + kernel.in_parts)
    away.fetch()
    assert (memory.own("pair_tally")[:, 1] == 3).all()
    states, simplices = memory.own("search_state")[:, :3], memory.own("search_simplex").reshape(worlds, -1, 32)[:, :3]
    resting = (states == 1) & (simplices[:, :, 31] > 1)
    assert (states > 0).mean() > 0.9
    assert resting.sum() > 0.9 * (states > 0).sum()


def test_a_shape_deep_in_a_plate_near_its_rim_leaves_sideways() -> None:
    with Simulation(load_model(model("box", "ellipsoid")), backend="host", dtype="float64") as sim:
        sim.set_state(qpos=np.array([[0.098, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]]))
        sim.forward()
        contact = sim.contacts(0)  # its normal leads from the ellipsoid to the box
        np.testing.assert_allclose(contact.dist, [-0.032], atol=1e-9)
        np.testing.assert_allclose(np.asarray(contact.frame).reshape(-1, 9)[:, :3], [[-1, 0, 0]], atol=1e-6)


@pytest.mark.parametrize("owner", OWNERS)
def test_worlds_with_a_queue_of_searches_have_the_same_contacts(owner: str) -> None:
    mj, number = mujoco.MjModel.from_xml_string(model(owner, "wedge", 12)), 12
    qpos = np.stack([poses(seed)[:number].ravel() for seed in (1, 2)])
    found = []
    for worlds in (2, 64):
        with Simulation(load_model(mj), worlds, backend="host") as sim:
            states = to_host(sim.groups[0].field("qpos")).copy()
            states[:2] = qpos
            sim.set_state(qpos=states)
            sim.forward()
            names = {kernel.name for kernel in sim.schedule.plan().kernels(frozenset())}
            assert ("only_collision_touch" in names) == (worlds == 2)
            contacts = [sim.contacts(world) for world in range(2)]
            found.append([np.column_stack([c.dist, c.pos, np.asarray(c.frame).reshape(-1, 9)]) for c in contacts])
    for one, other in zip(*found, strict=True):
        assert len(one) > number // 2
        np.testing.assert_array_equal(one, other)


LUMP = (
    "0.0971 0.0912 -0.0344 0.0219 0.0763 0.0397 0.0333 -0.0072 0.025 -0.0234 -0.0424 0.0996 0.061 0.068 -0.0343 "
    "0.0313 -0.0946 -0.0104 0.007 0.0073 0.0539 -0.1142 0.0322 0.0661 -0.0628 0.0609 0.0654"
)
"""Of its faces, two meet at less than half a degree, so that MuJoCo makes one face of four corners of them."""
TOUCHING = {"ball": 'size="0.05"', "box": 'type="box" size="0.02 0.03 0.01"'}


def uneven(mj: mujoco.MjModel) -> tuple[np.ndarray, np.ndarray]:
    """Corners (n, 3) and unit normal of the face of the mesh whose corners are farthest from a plane."""
    found = []
    for face in range(mj.mesh_polynum[0]):
        corners = mj.mesh_vert[mj.mesh_polyvert[mj.mesh_polyvertadr[face] :][: mj.mesh_polyvertnum[face]]]
        heights = corners @ mj.mesh_polynormal[face]
        found.append((np.ptp(heights), face, corners))
    off, face, corners = max(found, key=lambda one: one[0])
    assert off > 1e-5
    return corners, mj.mesh_polynormal[face]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("touching", TOUCHING)
def test_shapes_around_a_face_that_is_no_plane_are_as_far_as_in_mujoco(touching: str, dtype: str) -> None:
    mj = mujoco.MjModel.from_xml_string(
        f"""<mujoco><option ccd_tolerance="1e-12" ccd_iterations="500"/>
        <asset><mesh name="lump" vertex="{LUMP}"/></asset><default><geom margin="0.02"/></default>
        <worldbody><geom type="mesh" mesh="lump"/><body><freejoint/><geom {TOUCHING[touching]}/></body></worldbody>
        </mujoco>"""
    )
    (corners, normal), rng, states = uneven(mj), np.random.default_rng(0), 400
    beyond = rng.uniform(0.03, 0.06, (states, 1)) if touching == "ball" else rng.uniform(-0.01, 0.03, (states, 1))
    weights = rng.dirichlet(np.ones(len(corners)), states) * 1.6 - 0.6 / len(corners)  # beyond the sides, too
    local = weights @ corners + beyond * normal
    qpos = np.concatenate([np.zeros((states, 3)), rng.normal(size=(states, 4))], axis=1)
    data = mujoco.MjData(mj)
    mujoco.mj_kinematics(mj, data)
    qpos[:, :3] = local @ data.geom_xmat[0].reshape(3, 3).T + data.geom_xpos[0]
    compared = 0
    with Simulation(load_model(mj), states, backend="host", dtype=dtype) as sim:
        sim.set_state(qpos=qpos)
        sim.forward()
        for world, state in enumerate(qpos):
            data.qpos[:] = state
            mujoco.mj_fwdPosition(mj, data)
            ours = sim.contacts(world)
            if data.ncon and ours.ncon:
                compared += 1
                assert abs(np.min(ours.dist) - data.contact.dist.min()) < 10 * TOLERANCE[dtype], world
    assert compared > states // 2
