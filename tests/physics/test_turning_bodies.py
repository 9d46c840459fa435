"""Bodies that only turn about their centre of mass, on the ground or held at the rim, in float32.

MuJoCo's inverse inertia along a line is zero for them, so that it takes forces of 1e16 N, which cancel. The reference
is MuJoCo with the weight that kernels take instead.
"""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from simengine import Simulation, check_model, load_model
from simengine.model.rows import with_least_weights

ARM = """<body pos="0 0 0.25"><joint type="hinge" axis="0 1 0" damping="0.1"/>
  <geom type="capsule" fromto="0 0 0 0.2 0 0.1" size="0.03"/></body>"""
ON_GROUND = """<mujoco><worldbody><geom type="plane" size="2 2 1"/>
  <body pos="0 0 -0.01"><joint name="turn" type="hinge" axis="0 0 1" damping="0.1"/>
    <geom type="{}" fromto="0 0 0 0 0 0.2" size="0.05"/>{}</body></worldbody>
  <actuator><motor joint="turn" gear="1"/></actuator></mujoco>"""
CRANK = """<mujoco><worldbody>
  <body name="wheel" pos="0 0 1"><joint name="turn" type="hinge" axis="0 1 0" damping="0.1"/>
    <geom type="cylinder" size="0.2 0.02" euler="90 0 0" contype="0"/></body>
  <body name="rod" pos="0.2 0 1"><freejoint/>
    <geom type="capsule" fromto="0 0 0 0.5 0 0" size="0.02" contype="0"/></body>
  </worldbody><equality><connect body1="wheel" body2="rod" anchor="0.2 0 0"/></equality>
  <actuator><motor joint="turn" gear="1"/></actuator></mujoco>"""
MODELS = {
    "cylinder on the ground": ON_GROUND.format("cylinder", ARM),
    "box on the ground": ON_GROUND.format("box", ARM),
    "crank": CRANK,
}


@pytest.mark.parametrize("backend", ["host", pytest.param("jax", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", MODELS)
def test_they_move_as_in_mujoco(name: str, backend: str) -> None:
    mj = with_least_weights(mujoco.MjModel.from_xml_string(MODELS[name]))
    data = mujoco.MjData(mj)
    ctrl = np.random.default_rng(0).uniform(-1, 1, (60, mj.nu))
    with Simulation(MODELS[name], 1, backend=backend, dtype="float32") as sim:
        for k in range(60):
            data.ctrl[:] = ctrl[k]
            mujoco.mj_step(mj, data)
            sim.step(1, ctrl=ctrl[k][None])
        assert np.abs(np.asarray(sim.qpos)[0] - data.qpos).max() < 2e-3
        assert np.abs(np.asarray(sim.qvel)[0] - data.qvel).max() < 0.05


def test_a_check_of_float32_has_them_held() -> None:
    report = check_model(load_model(MODELS["crank"]), backend="host", dtype="float32", num_states=20, num_steps=20)
    assert report.passed, report.verdict()
