"""Searches for contacts that the worlds of a shard have in one queue, against those of a world by itself."""

from __future__ import annotations

import numpy as np

from simengine import Simulation, load_model
from simengine.model.build import MOST_KEPT
from tests.gpu.compare import to_host

GEOMS = 11
"""Of each of two bodies. The pairs are more than those of which the state of a search is kept."""


def bodies_of_ellipsoids() -> str:
    """Two bodies whose ellipsoids all overlap."""
    geoms = "".join(
        f'<geom type="ellipsoid" size="{0.1 + 0.01 * i} 0.12 {0.15 + 0.004 * i}" '
        f'pos="{0.02 * (i % 3)} {0.02 * (i // 3)} {0.01 * i}"/>'
        for i in range(GEOMS)
    )
    bodies = "".join(
        f'<body pos="{0.03 * b} 0.05 {1 + 0.1 * b}" euler="{10 * b} 20 30"><freejoint/>{geoms}</body>' for b in range(2)
    )
    return f"<mujoco><worldbody>{bodies}</worldbody></mujoco>"


def contacts_of(worlds: int, heights: np.ndarray) -> tuple[list[np.ndarray], set[str]]:
    """Distances, positions and frames of the contacts of the first worlds, and the names of the kernels of a step.

    Args:
        worlds: number of worlds.
        heights: by how much the second body is higher in the first of them [m].
    """
    sim = Simulation(load_model(bodies_of_ellipsoids()), worlds, backend="host")
    group = sim.groups[0]
    qpos = to_host(group.field("qpos")).copy()
    qpos[: len(heights), 9] += heights
    sim.set_state(qpos=qpos)
    sim.forward()
    found = [group.contacts(world) for world in range(len(heights))]
    names = {kernel.name for kernel in sim.schedule.plan().kernels(frozenset())}
    sim.close()
    return [np.column_stack([c.dist, c.pos, c.frame.reshape(-1, 9)]) for c in found], names


def test_worlds_with_a_queue_have_the_contacts_of_worlds_by_themselves() -> None:
    heights = np.array([0.0, 10.0, 0.25])  # all touch, none, and some
    queued, names = contacts_of(3, heights)
    alone, others = contacts_of(64, heights)
    assert "only_collision_touch" in names
    assert "only_collision_touch" not in others
    assert len(queued[0]) == GEOMS**2 > MOST_KEPT // 4
    assert len(queued[1]) == 0 < len(queued[2]) < GEOMS**2
    for one, other in zip(queued, alone, strict=True):
        np.testing.assert_array_equal(one, other)
