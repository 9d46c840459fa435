"""How deep a geom is in itself."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from simengine import Simulation, check_model, load_model
from simengine.check.itself import with_own_depths
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


def test_a_mesh_in_itself_is_compared_where_mujoco_finds_it() -> None:
    lump = "-0.0778 -0.1086 0.1168 -0.0652 0.1194 0.0301 -0.102 -0.1041 -0.0866 0.0913 0.0305 -0.0534 0.09 0.11 -0.1"
    scene = SCENE.replace("<worldbody>", f'<asset><mesh name="m" vertex="{lump}"/></asset><worldbody>', 1)
    mj = mujoco.MjModel.from_xml_string(scene.format('type="mesh" mesh="m"', 1.0))
    data, rng, qpos, found = mujoco.MjData(mj), np.random.default_rng(0), [], []
    for _ in range(60):
        data.qpos[3:] = rng.normal(size=4)
        mujoco.mj_forward(mj, data)
        qpos.append(data.qpos.copy())
        found.append(collect(mj, data)["sensordata"][1])
        assert np.isnan(found[-1]) == (data.sensordata[1] == 0)
    assert 0 < np.isnan(found).sum() < 60
    with Simulation(load_model(mj), num_worlds=60, backend="host", dtype="float64") as sim:
        sim.set_state(qpos=np.array(qpos))
        sim.forward()
        ours = np.asarray(sim.field("sensordata"))[:, 1]
    np.testing.assert_allclose(ours, np.nanmin(found), atol=1e-9)


def test_other_sensors_are_left_as_they_are() -> None:
    two = SCENE.replace("</worldbody>", '<body name="c" pos="1 0 0"><geom size="0.1"/></body></worldbody>')
    silent = SCENE.replace("<worldbody>", '<option><flag sensor="disable"/></option><worldbody>')
    for text in (two.format('size="0.1"', 1).replace('body2="b"', 'body2="c"'), silent.format('size="0.1"', 1)):
        mj = mujoco.MjModel.from_xml_string(text)
        data = mujoco.MjData(mj)
        mujoco.mj_forward(mj, data)
        assert np.array_equal(with_own_depths(mj, data), data.sensordata)
