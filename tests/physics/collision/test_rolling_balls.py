"""Ellipsoids that CUDA's kernels search without the balls that can roll inside them."""

from __future__ import annotations

import numpy as np
import pytest

from simengine import Simulation, load_model
from simengine.backends import select
from simengine.kernels.kernel import Kernel
from simengine.plan import catalogue
from tests.helpers.cuda_on_host.backend import FiberBackend
from tests.helpers.cuda_on_host.resident import FiberResident
from tests.stages.harness import Memory, arguments, call
from tests.stages.harness_chain import single

SIZE = (0.09, 0.06, 0.05)
BALL = SIZE[2] ** 2 / SIZE[0]
SHAPES = {
    "ellipsoid": 'size="0.1 0.07 0.05"',
    "box": 'size="0.1 0.08 0.05"',
    "capsule": 'size="0.04 0.1"',
    "cylinder": 'size="0.08 0.06"',
}
WORLDS = 300
CORES_DEEP, CORES_REST = 2, 3


def pair_with(shape: str) -> str:
    """An ellipsoid, and another shape that moves."""
    return (
        f'<mujoco><worldbody><body><geom type="ellipsoid" size="{" ".join(map(str, SIZE))}"/></body>'
        f'<body><freejoint/><geom type="{shape}" {SHAPES[shape]}/></body></worldbody></mujoco>'
    )


def poses() -> np.ndarray:
    """Poses of the shape in any orientation, near the ellipsoid's centre and far from it."""
    rng = np.random.default_rng(3)
    places, turns = rng.normal(size=(WORLDS, 3)), rng.normal(size=(WORLDS, 4))
    places *= rng.uniform(0.02, 0.2, (WORLDS, 1)) / np.linalg.norm(places, axis=1, keepdims=True)
    return np.hstack([places, turns / np.linalg.norm(turns, axis=1, keepdims=True)]).astype(np.float32)


def contacts_of(shape: str, backend: str, dtype: str) -> list[tuple[np.ndarray, ...]]:
    """Distances, normals and places of the contacts of each world."""
    with Simulation(load_model(pair_with(shape)), num_worlds=WORLDS, backend=backend, dtype=dtype) as sim:
        sim.set_state(qpos=poses())
        sim.forward()
        found = [sim.contacts(world) for world in range(WORLDS)]
        return [(np.array(c.dist), np.array(c.frame).reshape(-1, 9)[:, :3], np.array(c.pos)) for c in found]


@pytest.mark.parametrize("shape", SHAPES)
def test_contacts_of_ellipsoids_are_exact_in_float32_however_deep(shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(select._MAKERS, "cuda", FiberBackend)
    exact, rounded = contacts_of(shape, "host", "float64"), contacts_of(shape, "cuda", "float32")
    depths = -np.concatenate([dist for dist, _, _ in exact])
    assert (depths > 1.5 * BALL).sum() > 10
    assert ((depths > 0) & (depths < 0.5 * BALL)).sum() > 3
    for world, (one, other) in enumerate(zip(exact, rounded, strict=True)):
        assert len(one[0]) == len(other[0]), world
        for value, found, slack in zip(one, other, (1e-7, 1e-4, 1e-5), strict=True):
            np.testing.assert_allclose(found, value, atol=slack, err_msg=f"world {world}")


def run(away: FiberResident, kernel: Kernel, memory: Memory) -> None:
    """Run a kernel on the host as on a GPU."""
    values = arguments(kernel, memory, scalars={"parts": 1})
    away.call(kernel, values, worlds_a_block=4, parts=1 + kernel.in_parts)


def test_ellipsoids_that_overlap_by_less_than_their_balls_need_no_search_for_a_depth() -> None:
    memory = Memory(load_model(pair_with("box")).table, "float32", WORLDS, 4 * WORLDS, 0)
    memory.set({"qpos": poses(), "world_status": np.zeros(WORLDS, np.int32)})
    call(single("kinematics"), memory, arguments(single("kinematics"), memory))
    away = FiberResident(memory)
    for kernel in catalogue.SEARCHES[:2]:
        run(away, kernel, memory)
    away.fetch()
    searched = memory.own("pair_tally")[:, 1] > 0
    deep = searched & (memory.own("search_state")[:, 0] == CORES_DEEP)
    dists = [dist for dist, _, _ in contacts_of("box", "host", "float64")]
    depths = np.array([-dist[0] if len(dist) else 0.0 for dist in dists])
    assert ((depths > 0) & (depths < BALL)).sum() > 5
    assert not (deep & (depths <= BALL)).any()
    # the others as deep are nearest to the side's plane, so that they rest on it however deep they are
    on_side = memory.own("search_simplex").reshape(WORLDS, -1, 32)[:, 0, 31] > 1
    np.testing.assert_array_equal(deep, (depths > BALL) & ~on_side)
    assert deep.sum() > 3
    resting = searched & (memory.own("search_state")[:, 0] == CORES_REST)
    assert resting.sum() > 3
    assert (depths[resting] > 0).sum() > 3
