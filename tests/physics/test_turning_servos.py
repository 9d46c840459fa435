"""Position servos on spatial rotations with activations go the shorter way around, as MuJoCo's do."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from simengine import Simulation

JOINTS = {
    "ball joint": ('<joint name="j" type="ball"/>', 'joint="j" gear="0.3 0 1"'),
    "site": ('<joint type="ball"/>', 'site="s" refsite="r" gear="0 0 0 0.3 0 1"'),
    "hinge": ('<joint name="j"/>', 'joint="j" gear="1.2"'),
}
DYNAMICS = {
    "filter": 'dyntype="filter" dynprm="0.1"',
    "filterexact, limited": 'dyntype="filterexact" dynprm="0.1" actlimited="true" actrange="-9 9"',
    "integrator": 'dyntype="integrator"',
    "early": 'dyntype="filterexact" dynprm="0.1" actearly="true"',
}


def model_of(joint: str, dynamics: str, integrator: str) -> mujoco.MjModel:
    element, where = JOINTS[joint]
    return mujoco.MjModel.from_xml_string(
        f'<mujoco><option integrator="{integrator}"/><worldbody><site name="r"/><body>{element}<geom size="0.1"/>'
        f'<site name="s"/></body></worldbody><actuator><general {where} {DYNAMICS[dynamics]} gainprm="0.02" '
        'biastype="affine" biasprm="0 -0.02 0"/></actuator></mujoco>'
    )


@pytest.mark.parametrize("backend", ["host", pytest.param("jax", marks=pytest.mark.slow)])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("integrator", ["Euler", "RK4", "implicitfast"])
@pytest.mark.parametrize("dynamics", DYNAMICS)
@pytest.mark.parametrize("joint", JOINTS)
def test_activations_are_those_of_mujoco(joint: str, dynamics: str, integrator: str, dtype: str, backend: str) -> None:
    mj, worlds, rng = model_of(joint, dynamics, integrator), 32, np.random.default_rng(0)
    data = mujoco.MjData(mj)
    act, ctrl = rng.uniform(-8, 8, (worlds, 1)), rng.uniform(-8, 8, (worlds, 1))
    qpos = rng.normal(size=(worlds, mj.nq))
    if mj.nq == 4:
        qpos /= np.linalg.norm(qpos, axis=1, keepdims=True)
    qpos, act, ctrl = (values.astype(np.float32).astype(np.float64) for values in (qpos, act, ctrl))
    expected = []
    for world in range(worlds):
        mujoco.mj_resetData(mj, data)
        data.qpos, data.act, data.ctrl = qpos[world], act[world], ctrl[world]
        mujoco.mj_step(mj, data)
        expected.append(np.concatenate([data.act, data.qvel]))
    with Simulation(mj, worlds, backend=backend, dtype=dtype) as sim:
        sim.set_state(qpos=qpos, act=act)
        sim.step(ctrl=ctrl)
        group = sim.groups[0]
        found = np.concatenate([group.to_host(group.field(name)) for name in ("act", "qvel")], axis=1)
    np.testing.assert_allclose(found, np.array(expected), rtol=0, atol=1e-9 if dtype == "float64" else 2e-5)
