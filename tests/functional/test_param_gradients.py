"""`make_step` with `make_params`: steps of worlds with parameters of their own, and derivatives by these parameters."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import simengine
from simengine.engines.jax_step import initial_state, make_step
from simengine.model import load_table
from simengine.model.params import PARAMS, WorldParameters
from tests.functional.test_gradients import check
from tests.simulation.test_params import EVERYTHING, fallen

ROLLER = """<mujoco>
  <option timestep="0.004" cone="elliptic" tolerance="1e-13" iterations="200"/>
  <default><joint frictionloss="0.05"/></default>
  <worldbody>
    <geom type="plane" size="1 1 1" friction="0.2"/>
    <body pos="0 0 0.1">
      <joint type="slide" axis="1 0 0" damping="0.1"/><joint type="slide" axis="0 0 1" damping="0.2"/>
      <joint name="turn" axis="0 1 0" damping="0.05"/>
      <geom size="0.1" mass="2" friction="0.6"/>
    </body>
  </worldbody>
  <actuator><position joint="turn" kp="3"/></actuator>
</mujoco>"""
"""A ball that slides on the floor and is turned."""

LEAN = ROLLER.replace("elliptic", "pyramidal").replace('frictionloss="0.05"', 'armature="0.01"')
GIVEN = ("body_mass", "geom_friction", "dof_damping", "gravity", "geom_size", "actuator_gainprm")
WORLDS = 6


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(LEAN, id="pyramids", marks=pytest.mark.slow),
        pytest.param(ROLLER, id="cones", marks=pytest.mark.slow),
        pytest.param(ROLLER.replace("<option", "<option solver='PGS'"), id="PGS", marks=pytest.mark.slow),
    ],
)
def test_steps_are_those_of_compiled_models_and_differentiate(text: str) -> None:
    """One compiled batch of worlds that differ in their parameters, and its derivatives by these."""
    mj = mujoco.MjModel.from_xml_string(text)
    model = load_table(mj)
    names = (*GIVEN, *(("dof_frictionloss",) if "frictionloss" in text else ()))
    rng = np.random.default_rng(3)
    values = {}
    for name in names:
        default = np.array(getattr(mj.opt if name == "gravity" else mj, name))
        values[name] = default * rng.uniform(0.8, 1.2, (WORLDS, *default.shape))
    start = {"qpos": [0.02, -0.03, 0.3], "qvel": [0.7, -0.2, 0.4], "ctrl": [0.9]}
    step = make_step(model)
    base = initial_state(model, jnp.float64)._replace(**{f: jnp.asarray(start[f]) for f in ("qpos", "qvel")})

    def function(x: Any) -> tuple[jax.Array, jax.Array]:
        params = simengine.make_params(model, **dict(zip(names, x, strict=True)))
        following = step(base, jnp.asarray(start["ctrl"]), params)
        return following.qpos, following.qvel

    loose = "PGS" in text
    found = check(function, tuple(map(jnp.asarray, values.values())), *((1e-4, 1e-5) if loose else ()))
    for world in range(WORLDS):
        for name, value in values.items():
            getattr(mj.opt if name == "gravity" else mj, name)[...] = value[world]
        data = mujoco.MjData(mj)
        mujoco.mj_setConst(mj, data)
        for name, value in start.items():
            getattr(data, name)[:] = value
        mujoco.mj_step(mj, data)
        for ours, theirs in zip(found, (data.qpos, data.qvel), strict=True):
            np.testing.assert_allclose(ours[world], theirs, rtol=0, atol=1e-5 if loose else 1e-9)


@pytest.mark.slow
def test_derivatives_by_all_parameters() -> None:
    """Of much that a step computes, past limits, in contact and with a wrapped tendon."""
    model = load_table(EVERYTHING.replace("RK4", "implicitfast"))
    rng, defaults = np.random.default_rng(4), {name: WorldParameters(model).default(name) for name in PARAMS}
    values = [default * rng.uniform(0.97, 1.03, (WORLDS, *default.shape)) for default in defaults.values()]
    start, step = {name: jnp.asarray(value) for name, value in fallen().items()}, make_step(model, derived=True)
    base = initial_state(model, jnp.float64)._replace(qpos=start["qpos"], qvel=start["qvel"])

    def function(x: Any) -> tuple[jax.Array, ...]:
        params = simengine.make_params(model, **dict(zip(defaults, x, strict=True)))
        state, fields = step(base, 0.5 * start["ctrl"], params)
        return state.qpos, state.qvel, *(fields[name] for name in ("energy", "sensordata", "efc_D", "ten_length"))

    check(function, tuple(map(jnp.asarray, values)))


def test_parameters_are_checked() -> None:
    model = load_table(LEAN)
    bad: list[tuple[str, dict[str, Any]]] = [
        ("'geom_pos' is not a parameter that worlds may differ in", {"geom_pos": np.zeros(3)}),
        ("cannot differ between worlds: it has no fluid", {"density": 1.0}),
        ("some dofs have no friction loss", {"dof_frictionloss": np.ones(3)}),
        (r"body_mass has shape \(3,\), expected \(2,\)", {"body_mass": np.ones(3)}),
    ]
    for words, params in bad:
        with pytest.raises(ValueError, match=words):
            simengine.make_params(model, **params)
    step, state = make_step(model), initial_state(model)
    with pytest.raises(ValueError, match="'gravity', which is no field of the model table; give what make_params"):
        step(state, jnp.zeros(1), {"gravity": jnp.zeros(3)})
    with pytest.raises(ValueError, match=r"body_mass of shape \(5, 2\) .* expected \(2,\); vmap the step"):
        step(state, jnp.zeros(1), {"body_mass": jnp.ones((5, 2))})


def test_parameters_keep_their_precision() -> None:
    """That of JAX arrays, else JAX's default; the step has its state's, and strict promotion is satisfied."""
    model = load_table(ROLLER)

    def following(mass: Any) -> Any:
        params = simengine.make_params(model, body_mass=mass, geom_friction=np.ones((2, 3)))
        assert {value.dtype for value in params.values()} == {mass.dtype}
        return make_step(model)(initial_state(model, jnp.float32), jnp.zeros(1, jnp.float32), params)

    with jax.numpy_dtype_promotion("strict"), jax.numpy_rank_promotion("raise"):
        for dtype in ("float32", "float64"):
            shapes = jax.eval_shape(following, jnp.ones(2, dtype))
            assert {leaf.dtype for leaf in shapes if leaf is not None} == {jnp.dtype("float32")}
    assert simengine.make_params(model, gravity=[0, 0, -5])["opt_gravity"].dtype == jnp.float64
    assert simengine.make_params(model) == {}
