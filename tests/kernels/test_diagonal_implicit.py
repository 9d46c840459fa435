"""Velocities that lanes of a GPU find implicitly where each damper and actuator acts on one dof."""

from __future__ import annotations

import numpy as np
import pytest

from simengine import Simulation, load_model
from simengine.backends import select
from tests.helpers.cuda_on_host.backend import FiberBackend

LIMB = """<body pos="0.1 0 0"><joint axis="0 1 0" damping="2"/><geom type="capsule" size=".02" fromto="0 0 0 .2 0 0"/>
<body pos="0.2 0 0"><joint type="slide" axis="1 1 0"/><geom type="capsule" size=".02" fromto="0 0 0 .2 0 0"/>
<body pos="0.2 0 0"><joint type="ball" damping="0.3"/><geom type="box" size=".1 .05 .02"/></body></body></body>"""
FREE = '<body pos="{x} 1 1"><freejoint/><geom type="box" size=".1 .2 .05"/>{more}</body>'
WELDED = '<body pos="0 0.3 0" euler="20 0 30"><geom type="capsule" size=".05 .1"/></body>'
MODELS = {
    "limbs": LIMB,
    "a legged body": FREE.format(x=0, more=LIMB),
    "free bodies beside limbs": LIMB + FREE.format(x=1, more=WELDED) + LIMB + FREE.format(x=2, more=""),
    "more than 32 dofs": 5 * LIMB + FREE.format(x=1, more=WELDED) + FREE.format(x=2, more=""),
}


def model(bodies: str) -> str:
    """The model with servos, which act against the velocity, on the joints of one dof."""
    named, servos = bodies, ""
    for number in range(bodies.count('type="slide"')):
        named = named.replace('<joint type="slide"', f'<joint name="s{number}" type="slide"', 1)
        servos += f'<position joint="s{number}" kp="30" kv="{3 * number + 2}"/><motor joint="s{number}"/>'
    option = '<option integrator="implicitfast" timestep="0.01"/><compiler autolimits="true"/>'
    flags = '<default><geom contype="0" conaffinity="0"/></default>'
    return f"<mujoco>{option}{flags}<worldbody>{named}</worldbody><actuator>{servos}</actuator></mujoco>"


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name == "limbs" else ()) for name in MODELS]
)
def test_velocities_are_those_of_the_whole_matrix(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = {}
    for backend in ("host", "cuda"):
        monkeypatch.setitem(select._MAKERS, "cuda", FiberBackend)
        dtype = "float32" if name == "more than 32 dofs" else "float64"  # whose matrices are in registers then alone
        sim = Simulation(load_model(model(MODELS[name])), 3, backend=backend, executor="serial", dtype=dtype)
        rng = np.random.default_rng(0)
        sim.set_state(qvel=rng.normal(size=(3, sim.model.nv)))
        for _ in range(2):
            sim.step(ctrl=rng.normal(size=(3, sim.model.nu)))
        found[backend] = np.concatenate([np.asarray(sim.qpos), np.asarray(sim.qvel)], axis=1)
        calls = [entry.name for entry in sim.schedule.kernel_list]
    assert any(call.startswith("implicitfast_diagonal") for call in calls)
    close = {"rtol": 2e-4, "atol": 2e-5} if dtype == "float32" else {"rtol": 1e-9, "atol": 1e-11}
    np.testing.assert_allclose(found["cuda"], found["host"], **close)
