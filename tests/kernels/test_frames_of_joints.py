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


CHAINED = ("kinematics", "com_pos", "com_vel")
"""Stages in which bodies get something from all bodies above them."""


def links(number: int) -> mujoco.MjModel:
    """A chain of hinges."""
    bodies = "".join(
        f'<body pos="0.1 0.02 0" euler="{10 * (i % 3)} 5 0"><joint axis="0 {i % 2} {1 - i % 2}"/>'
        '<geom type="capsule" fromto="0 0 0 .1 0 0" size=".03" mass=".1"/>'
        for i in range(number)
    )
    return mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{bodies}{'</body>' * number}</worldbody></mujoco>")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("number", [8, 16, 32, 64, 100])
def test_frames_and_velocities_of_chains_are_as_exact_as_body_by_body(number: int, dtype: str) -> None:
    """Nearly so in chains of up to 16 bodies, whose quaternions have length one at the end alone."""
    mj, worlds, rng = links(number), 12, np.random.default_rng(0)
    state = {name: rng.normal(size=(worlds, number)).astype(np.float32) for name in ("qpos", "qvel")}
    state["qpos"] *= 0.3
    memory, data = Memory(load_table(mj), dtype, worlds, worlds, worlds), mujoco.MjData(mj)
    memory.set(state)
    away = FiberResident(memory.copy())
    exact: dict[str, list[np.ndarray]] = {name: [] for name in ("xpos", "xmat", "xaxis", "cinert", "cdof", "cvel")}
    for world in range(worlds):
        data.qpos[:], data.qvel[:] = state["qpos"][world], state["qvel"][world]
        mujoco.mj_fwdPosition(mj, data)
        mujoco.mj_fwdVelocity(mj, data)
        for name, values in exact.items():
            values.append(np.array(getattr(data, name)).reshape(-1))
    for kernel in map(single, CHAINED):
        away.call(kernel, arguments(kernel, away.memory))
        call(kernel, memory, arguments(kernel, memory))
    away.fetch()
    for name, values in exact.items():
        found = (of.own(name).reshape(worlds, -1) - np.array(values) for of in (away.memory, memory))
        in_rounds, one_by_one = (np.sqrt(np.mean(np.square(error))) for error in found)
        assert in_rounds <= (1.2 if number > 16 else 1.5) * one_by_one, name
