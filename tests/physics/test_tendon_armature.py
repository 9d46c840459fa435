"""Armature of fixed tendons against MuJoCo: inertia between joints of one branch, in dense worlds and in blocks."""

from __future__ import annotations

import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from simengine import check_model, load_model
from simengine.model import load_table
from simengine.physics.dynamics.crb_general_jax import crb_general

MODEL = """
<mujoco><option timestep="0.005"/>
  <worldbody><geom type="plane" size="5 5 1"/>
    <body pos="0 0 0.5"><joint name="a" axis="0 1 0" damping="0.1"/>
      <geom type="capsule" size="0.04" fromto="0 0 0 0.3 0 0"/>
      <body pos="0.3 0 0"><joint name="b" axis="0 1 0" armature="0.01"/><joint name="c" type="slide" axis="1 0 0"/>
        <geom type="capsule" size="0.03" fromto="0 0 0 0.2 0 0"/></body>
      <body pos="0.3 0 0.1"><joint name="d" axis="0 0 1"/>
        <geom type="capsule" size="0.03" fromto="0 0 0 0.2 0 0"/></body>
    </body>
    <body pos="0 1 0.3"><freejoint/><geom size="0.1"/>
      <body><joint name="e" axis="1 0 0"/><geom size="0.1" pos="0 0.15 0"/></body></body>
    {more}
  </worldbody>
  <tendon>
    <fixed name="near" armature="0.5" range="-0.3 0.3" limited="true">
      <joint joint="b" coef="1"/><joint joint="a" coef="-2"/><joint joint="c" coef="0.7"/></fixed>
    <fixed name="far" armature="0.2" stiffness="1">
      <joint joint="d" coef="1"/><joint joint="a" coef="0.4"/><joint joint="e" coef="-1"/></fixed>
  </tendon>
  <actuator><motor tendon="near" gear="3"/></actuator>
</mujoco>
"""
MANY = "".join(f'<body pos="{i} 3 0.3"><freejoint/><geom size="0.1"/></body>' for i in range(11))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("more", ["", MANY], ids=["dense", "blocks"])
def test_every_field_agrees_with_mujoco(more: str, dtype: str) -> None:
    model = load_model(MODEL.format(more=more))
    assert model.table.has_islands == bool(more)
    report = check_model(model, backend="host", dtype=dtype, num_states=20, num_steps=20)
    assert report.passed, report


def test_inertia_in_jax_is_mujocos() -> None:
    model = load_table(MODEL.format(more=""))
    data = mujoco.MjData(model.mj)
    mujoco.mj_forward(model.mj, data)
    known = [jnp.asarray(getattr(data, name)) for name in ("xipos", "ximat", "xanchor", "cinert", "cdof")]
    wanted = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model.mj, data, wanted)
    np.testing.assert_allclose(crb_general(model, *known)[1], wanted, atol=1e-6)
    assert wanted[0, 1] != 0  # joints of one branch, and of two of which the tendon reaches both
    assert wanted[1, 3] == 0
