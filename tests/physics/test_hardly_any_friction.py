"""Contacts with pyramids of hardly any friction, whose edges MuJoCo makes too hard for a solver in float32."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from simengine import Simulation, check_model
from simengine.model.rows import LEAST_SHARE

STEPS = 500
SHAPES = {
    "sphere": '<body pos="0 0 .12"><freejoint/><geom size=".1"/></body>',
    "box": '<body pos="0 0 .12" euler="10 5 3"><freejoint/><geom type="box" size=".1 .1 .1"/></body>',
    "chain": """<body pos="0 0 .3"><freejoint/><geom type="capsule" size=".05 .2" euler="0 90 0"/>
      <body pos=".2 0 0"><joint axis="0 1 0"/><geom type="capsule" fromto="0 0 0 .2 0 -.2" size=".04"/></body>
      <body pos="-.2 0 0"><joint axis="0 1 0"/><geom type="capsule" fromto="0 0 0 -.2 0 -.2" size=".04"/></body>
    </body>""",
}


def sliding(shape: str, friction: str, dim: int) -> mujoco.MjModel:
    """A shape that falls onto a plane."""
    return mujoco.MjModel.from_xml_string(f"""
<mujoco><default><geom friction="{friction} 0 0" condim="{dim}"/></default>
  <worldbody><geom type="plane" size="5 5 1"/>{SHAPES[shape]}</worldbody></mujoco>""")


@pytest.mark.parametrize("friction", ["0", "1e-4", "1e-3"])
@pytest.mark.parametrize("dim", [3, pytest.param(4, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("backend", "shape"), [*(("host", shape) for shape in SHAPES), pytest.param("jax", "box", marks=pytest.mark.slow)]
)
def test_what_slides_comes_to_rest_in_float32(backend: str, shape: str, dim: int, friction: str) -> None:
    mj = sliding(shape, friction, dim)
    data = mujoco.MjData(mj)
    mujoco.mj_step(mj, data, STEPS)
    with Simulation(mj, num_worlds=2, backend=backend, dtype="float32") as sim:
        sim.step(STEPS)
        qpos, qvel = (np.asarray(sim.field(name)) for name in ("qpos", "qvel"))
    np.testing.assert_allclose(qpos[:, 2], data.qpos[2], atol=1e-4)
    assert np.abs(qvel).max() < np.abs(data.qvel).max() + 0.01


@pytest.mark.parametrize("friction", [0.0, 0.005, 0.02])
@pytest.mark.parametrize("dim", [3, 4])
@pytest.mark.parametrize(
    ("backend", "dtype"),
    [("host", "float32"), ("host", "float64"), pytest.param("jax", "float32", marks=pytest.mark.slow)],
)
def test_edges_are_no_harder_in_float32_than_those_of_a_hundredth(
    backend: str, dtype: str, dim: int, friction: float
) -> None:
    mj = sliding("sphere", str(friction), dim)
    mj.qpos0[2] = 0.09
    data = mujoco.MjData(mj)
    mujoco.mj_forward(mj, data)
    share = 2 * data.contact.friction[0, 0] ** 2
    with Simulation(mj, num_worlds=1, backend=backend, dtype=dtype) as sim:
        sim.forward()
        hardness = np.asarray(sim.constraints(0).D)
    softer = min(1.0, share / LEAST_SHARE) if dtype == "float32" else 1.0
    np.testing.assert_allclose(hardness, softer * data.efc_D, rtol=1e-5)


def test_check_knows_how_hard_edges_are_in_float32() -> None:
    report = check_model(sliding("sphere", "1e-3", 3), backend="host", dtype="float32", num_states=40, num_steps=100)
    found = {field.field: field for field in report.fields}
    assert found["efc_D"].states > 10
    assert all(found[name].relative <= found[name].tolerance for name in ("efc_D", "efc_force", "qacc", "qvel"))
