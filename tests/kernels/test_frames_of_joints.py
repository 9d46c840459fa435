"""Lanes that share joints find the frames that a single lane finds, body by body."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from simengine.model import load_table
from tests.helpers.cuda_on_host.program import SCHEDULES, Schedule
from tests.helpers.cuda_on_host.resident import FiberResident
from tests.stages.harness import Memory, arguments, call
from tests.stages.harness_chain import single

FRAMES = ("xpos", "xquat", "xmat", "xipos", "ximat", "xanchor", "xaxis")
KINEMATICS = single("kinematics")

ARM = """<body pos="0.1 0.2 0.3" quat="0.9 0.1 0.2 0.1">{joints}<geom size="0.1" pos="0.1 0 0.1" quat="0.7 0 0.7 0"/>
<body pos="0.2 0 0"><joint type="ball" pos="0.02 0.01 0"/><geom size="0.1"/>
<body pos="0 0.2 0" euler="10 20 30"><geom size="0.1"/><body pos="0.1 0 0"><joint axis="1 0 1"/><geom size="0.1"/>
</body></body></body></body>"""
SEVERAL = (
    '<joint axis="0 0 1" pos="0.05 0 0.1"/><joint type="slide" axis="1 1 0" ref="0.1"/><joint axis="0 1 0"/>',
    '<joint type="slide" axis="0 0 1" pos="0 0.1 0"/><joint type="ball"/>',
    "",
)
MODEL = f"""<mujoco><worldbody>{"".join(ARM.format(joints=joints) for joints in SEVERAL)}
<body pos="1 1 1"><freejoint/><geom size="0.1"/>{ARM.format(joints=SEVERAL[0])}</body>
<body mocap="true" pos="0 1 0"><geom size="0.1"/>{ARM.format(joints="")}</body></worldbody></mujoco>"""


def states(dtype: str) -> Memory:
    """Worlds with random coordinates, whose quaternions are not normalised."""
    mj, rng, worlds = mujoco.MjModel.from_xml_string(MODEL), np.random.default_rng(3), 5
    memory = Memory(load_table(mj), dtype, worlds, worlds, worlds)
    memory.set(
        {
            "qpos": rng.normal(size=(worlds, mj.nq)),
            "mocap_pos": rng.normal(size=(worlds, 1, 3)),
            "mocap_quat": rng.normal(size=(worlds, 1, 4)),
        }
    )
    return memory


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_joints_of_every_kind_move_their_bodies(schedule: Schedule) -> None:
    memory = states("float64")
    away = FiberResident(memory.copy(), schedule)
    away.call(KINEMATICS, arguments(KINEMATICS, away.memory), worlds_a_block=4)
    away.fetch()
    call(KINEMATICS, memory, arguments(KINEMATICS, memory))
    for name in FRAMES:
        np.testing.assert_allclose(away.memory.own(name), memory.own(name), rtol=0, atol=1e-13, err_msg=name)
