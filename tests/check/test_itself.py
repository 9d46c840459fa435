"""How deep a geom is in itself."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from simengine import Simulation, check_model, load_model
from simengine.check.itself import own_depths
from simengine.check.oracle import collect

SHAPES = {
    'type="sphere" size="0.1"': 0.2,
    'type="capsule" size="0.05 0.1"': 0.1,
    'type="ellipsoid" size="0.15 0.1 0.06"': 0.12,
    'type="cylinder" size="0.05 0.1"': 0.1,
    'type="cylinder" size="0.15 0.1"': 0.2,
    'type="box" size="0.15 0.1 0.06"': 0.12,
}
SCENE = """
<mujoco><worldbody><body name="b"><freejoint/><geom name="g" {}/></body></worldbody>
<sensor><clock/><distance geom1="g" body2="b" cutoff="{}"/></sensor></mujoco>"""


@pytest.mark.parametrize("cutoff", [0.05, 1.0])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_engine_measures_the_least_width_and_so_does_what_it_is_compared_with(shape: str, cutoff: float) -> None:
    mj = mujoco.MjModel.from_xml_string(SCENE.format(shape, cutoff))
    wanted, rng, data = -min(cutoff, SHAPES[shape]), np.random.default_rng(0), mujoco.MjData(mj)
    assert own_depths(mj) == {1: pytest.approx(wanted)}
    qpos = rng.normal(size=(40, 7))
    qpos[:, 3:] /= np.linalg.norm(qpos[:, 3:], axis=1, keepdims=True)
    readings = []
    for pose in qpos:
        data.qpos[:] = pose
        mujoco.mj_forward(mj, data)
        readings.append(float(data.sensordata[1]))
        assert collect(mj, data)["sensordata"][1] == pytest.approx(wanted, abs=1e-9)
    assert min(readings) >= wanted - 1e-9, "MuJoCo may give less depth, and never more"
    for dtype, off in (("float64", 1e-9), ("float32", 1e-5)):
        with Simulation(load_model(mj), num_worlds=len(qpos), backend="host", dtype=dtype) as sim:
            sim.set_state(qpos=qpos)
            sim.forward()
            np.testing.assert_allclose(np.asarray(sim.field("sensordata"))[:, 1], wanted, atol=off)


def test_mujoco_does_not_find_a_box_in_itself_in_some_poses() -> None:
    mj = mujoco.MjModel.from_xml_string(SCENE.format('type="box" size="0.15 0.1 0.06"', 1.0))
    data, rng, readings = mujoco.MjData(mj), np.random.default_rng(0), set()
    for _ in range(200):
        data.qpos[3:] = rng.normal(size=4)
        mujoco.mj_forward(mj, data)
        readings.add(round(float(data.sensordata[1]), 6))
    assert readings == {-0.12, 0.0}


def test_a_depth_that_is_off_by_one_percent_does_not_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    mj = mujoco.MjModel.from_xml_string(SCENE.format('type="box" size="0.15 0.1 0.06"', 1.0))
    assert check_model(mj, backend="host", dtype="float64", num_states=20, num_steps=4).passed
    forward = Simulation.forward

    def wrong(sim: Simulation) -> None:
        forward(sim)
        np.asarray(sim.field("sensordata"))[:, 1] *= 1.01

    monkeypatch.setattr(Simulation, "forward", wrong)
    assert not check_model(mj, backend="host", dtype="float64", num_states=20, num_steps=4).passed


def test_other_sensors_have_none() -> None:
    two = SCENE.replace("</worldbody>", '<body name="c" pos="1 0 0"><geom size="0.1"/></body></worldbody>')
    mj = mujoco.MjModel.from_xml_string(two.format('size="0.1"', 1).replace('body2="b"', 'body2="c"'))
    assert own_depths(mj) == {}
    silent = SCENE.format('size="0.1"', 1).replace(
        "<worldbody>", '<option><flag sensor="disable"/></option><worldbody>'
    )
    assert own_depths(mujoco.MjModel.from_xml_string(silent)) == {}
