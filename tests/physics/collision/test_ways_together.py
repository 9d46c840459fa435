"""Lanes that look for the way out of deep smooth shapes together, against a single lane."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from simengine.model import load_table
from simengine.plan import contact_kernels
from tests.stages.harness import Memory, arguments, call
from tests.stages.harness_chain import single
from tests.stages.harness_sanitizer import build, execute, record

pytestmark = [pytest.mark.sanitizer]
WORLDS = 4


def deep() -> mujoco.MjModel:
    """Shapes around each other, whose polytopes are full before the search for a depth converges; some have kinks."""
    shapes = ("ellipsoid' size='0.1 0.12 0.15", "cylinder' size='0.08 0.1", "box' size='0.15 0.1 0.1")
    bodies = "".join(f"<body><freejoint/><geom type='{shapes[i % 3]}'/></body>" for i in range(6))
    return mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{bodies}</worldbody></mujoco>")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_lanes_take_the_way_of_a_single_lane(dtype: str) -> None:
    mj, rng = deep(), np.random.default_rng(3)
    qpos = np.concatenate([rng.uniform(-0.05, 0.05, (WORLDS, 6, 3)), rng.normal(size=(WORLDS, 6, 4))], axis=2)
    memory = Memory(load_table(mj), dtype, WORLDS, 500, 0)
    memory.set({"qpos": qpos.reshape(WORLDS, -1), "world_status": np.zeros(WORLDS, dtype=np.int32)})
    call(single("kinematics"), memory, arguments(single("kinematics"), memory))
    kernels = contact_kernels.SEARCHES[:3]
    todo = [(kernel, arguments(kernel, memory, scalars={"parts": 2})) for kernel in kernels]
    buffers, recorded = record(memory, iter(todo))
    result = execute(build(kernels, dtype, 4, ()), kernels, buffers, recorded)
    assert result.status == 0
    found = memory.arrays["search_simplex"]
    assert np.count_nonzero(memory.own("search_state") == 2) > 10 * WORLDS
    np.testing.assert_array_equal(result.buffers["search_simplex"], found)
