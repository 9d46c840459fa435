"""`make_step` and `make_forward`: against MuJoCo's steps, under JAX's transformations, and their derivatives."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from simengine.make_step import State, initial_state, make_step
from simengine.model import Model, load_model
from tests.models import ALL, compile_model
from tests.oracle import Sample, collect, error, oracle_model, quick_jit, states_of

STEP_TOLERANCE = {"float64": 1e-6, "float32": 1e-3}


@cache
def trajectory(name: str, steps: int) -> tuple[Sample, np.ndarray, list[dict[str, np.ndarray]]]:
    """States along a MuJoCo trajectory under random controls, their warm starts, and what mj_step makes of each.

    Every state is rounded to float32 before it is stepped from. The trajectory starts over where it leaves a sane
    range, beside the reference configuration: contacts may be symmetric there, so that rounding decides between them.
    """
    mj, _ = oracle_model(name)
    data, rng = mujoco.MjData(mj), np.random.default_rng(1)
    before: list[tuple[np.ndarray, ...]] = []
    warm: list[np.ndarray] = []
    after: list[dict[str, np.ndarray]] = []
    for step in range(steps):
        if step == 0 or np.abs(data.qvel).max() > 50:
            mujoco.mj_resetData(mj, data)
            data.qpos += 1e-3 * rng.normal(size=mj.nq)
        for field in ("qpos", "qvel", "qacc_warmstart"):
            getattr(data, field)[:] = getattr(data, field).astype(np.float32)
        for field, scale in (("ctrl", 1.0), ("qfrc_applied", 0.1), ("xfrc_applied", 0.1)):
            target = getattr(data, field)
            target[:] = (scale * rng.uniform(-1, 1, size=target.shape)).astype(np.float32)
        before.append(tuple(getattr(data, f).copy() for f in Sample._fields))
        warm.append(data.qacc_warmstart.copy())
        mujoco.mj_step(mj, data)
        fields = collect(mj, data) | {"ncon": np.array(data.ncon), "nefc": np.array(data.nefc)}
        after.append(fields | {f: getattr(data, f).copy() for f in ("qpos", "qvel", "qacc_warmstart")})
    return Sample(*(np.stack(column) for column in zip(*before, strict=True))), np.stack(warm), after


def batch(name: str, dtype: str, steps: int) -> tuple[State, jax.Array]:
    """States along a trajectory with their warm starts, and the controls, for the JAX functions."""
    states, warm, _ = trajectory(name, steps)
    state, ctrl = states_of(oracle_model(name)[1], states, dtype)
    return state._replace(qacc_warmstart=jnp.asarray(warm, dtype)), ctrl


def worst_step_error(name: str, dtype: str, steps: int) -> dict[str, float]:
    _, model = oracle_model(name)
    after = trajectory(name, steps)[-1]
    with jax.numpy_dtype_promotion("strict"), jax.numpy_rank_promotion("raise"):
        following = quick_jit(jax.vmap(make_step(model)))(*batch(name, dtype, steps))
    assert following.qpos.dtype == dtype
    return {
        field: max(error(np.asarray(getattr(following, field)[i]), after[i][field]) for i in range(steps))
        for field in ("qpos", "qvel")
    }


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_ant_steps_as_mujoco_along_a_trajectory(dtype: str) -> None:
    after = trajectory("ant", 1000)[-1]
    assert sum(int(f["ncon"]) > 0 for f in after) > 300
    assert sum(int(f["nefc"]) for f in after) > 2000
    worst = worst_step_error("ant", dtype, 1000)
    assert max(worst.values()) < STEP_TOLERANCE[dtype], worst


STEPPED = ("half_cheetah", "hopper", "crates", "linkage", "ragdoll", "ropes", "dual")
"""Models with different rows, pairs, integrators and solvers."""


@pytest.mark.parametrize("name", STEPPED)
def test_models_step_as_mujoco_along_a_trajectory(name: str) -> None:
    worst = worst_step_error(name, "float64", 200)
    assert max(worst.values()) < STEP_TOLERANCE["float64"], worst


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in ALL if n != "ant"])
def test_models_step_as_mujoco_in_float32(name: str) -> None:
    worst = worst_step_error(name, "float32", 200)
    assert max(worst.values()) < STEP_TOLERANCE["float32"], worst


@pytest.mark.parametrize("name", ["hopper", "half_cheetah"])
def test_derived_fields_are_those_mujoco_leaves_after_a_step(name: str) -> None:
    """Runge-Kutta leaves the fourth evaluation's fields but the mean qacc; Euler those of the state stepped from."""
    _, model = oracle_model(name)
    after = trajectory(name, 200)[-1]
    following, fields = quick_jit(jax.vmap(make_step(model, derived=True)))(*batch(name, "float64", 200))
    for field in ("xpos", "subtree_com", "cvel", "qM", "qfrc_bias", "qfrc_constraint", "qacc"):
        worst = max(error(np.asarray(fields[field][i]), after[i][field]) for i in range(200))
        assert worst < 1e-6, field
    warm = max(error(np.asarray(following.qacc_warmstart[i]), after[i]["qacc_warmstart"]) for i in range(200))
    assert warm < 1e-6


DISABLED = [
    '<flag eulerdamp="disable"/>',
    '<flag gravity="disable" damper="disable"/>',
    '<flag contact="disable" spring="disable"/>',
    '<flag limit="disable" clampctrl="disable"/>',
    '<flag constraint="disable" actuation="disable"/>',
]


@pytest.mark.parametrize("flags", DISABLED)
def test_disable_flags(flags: str) -> None:
    xml = f"""<mujoco><option timestep="0.01">{flags}</option><worldbody><geom type="plane" size="1 1 1"/>
      <body pos="0 0 0.18"><joint type="slide" axis="0 0 1" damping="3" stiffness="40" springref="0.1"/>
        <joint name="turn" type="hinge" axis="0 1 0" range="-10 10" limited="true" damping="2"/>
        <geom type="capsule" size="0.1 0.2" quat="0.7 0 0.7 0"/></body></worldbody>
      <actuator><motor joint="turn" ctrlrange="-1 1" ctrllimited="true"/></actuator></mujoco>"""
    mj = mujoco.MjModel.from_xml_string(xml)
    mj.opt.tolerance = 1e-12
    data = mujoco.MjData(mj)
    data.qpos[:], data.qvel[:], data.ctrl[:] = (-0.1, 0.2), (0.3, 2.0), 5.0
    model = load_model(mj)
    state = initial_state(model, jnp.float64)._replace(qpos=jnp.asarray(data.qpos), qvel=jnp.asarray(data.qvel))
    following = quick_jit(make_step(model))(state, jnp.asarray(data.ctrl))
    mujoco.mj_step(mj, data)
    np.testing.assert_allclose(following.qpos, data.qpos, atol=1e-9)
    np.testing.assert_allclose(following.qvel, data.qvel, atol=1e-8)


def test_initial_state_is_the_reference_at_rest() -> None:
    model = load_model(compile_model("ant"))
    state = initial_state(model)
    assert {leaf.dtype for leaf in state} == {jnp.dtype("float32")}
    np.testing.assert_array_equal(state.qpos, model.qpos0.astype(np.float32))
    assert state.qvel.shape == (14,)
    assert state.xfrc_applied.shape == (model.nbody, 6)
    assert float(state.time) == 0


def test_rollout_under_jit_vmap_and_scan_equals_single_steps() -> None:
    _, model = oracle_model("inverted_pendulum")
    step = make_step(model)
    ctrls = jnp.asarray(np.random.default_rng(0).uniform(-1, 1, size=(5, 3, 1)))
    states = jax.vmap(lambda x: initial_state(model, jnp.float64)._replace(qvel=x))(
        jnp.asarray([[0.0, 1], [2, 3], [4, 5]])
    )

    @quick_jit
    def rollout(states: State, ctrls: jax.Array) -> State:
        return jax.lax.scan(lambda s, c: (jax.vmap(step)(s, c), None), states, ctrls)[0]

    final = rollout(states, ctrls)
    single = quick_jit(step)
    for world in range(3):
        state = jax.tree.map(lambda x, w=world: x[w], states)
        for ctrl in ctrls[:, world]:
            state = single(state, ctrl)
        np.testing.assert_allclose(final.qpos[world], state.qpos, rtol=1e-10)
    np.testing.assert_allclose(final.time, 5 * 0.02)


LEG = """<mujoco><option timestep="0.005" integrator="RK4" tolerance="1e-12"/><worldbody>
  <geom type="plane" size="1 1 1"/>
  <body pos="0 0 0.5"><joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 0 1"/>
    <geom size="0.1" mass="2"/>
    <body><joint name="hip" type="hinge" axis="0 1 0" range="-60 5" limited="true" damping="0.1"/>
      <geom type="capsule" fromto="0 0 -0.05 0.1 0 -0.38" size="0.05" mass="0.5"/></body></body></worldbody>
  <actuator><motor joint="hip" gear="5"/></actuator></mujoco>"""


def differentiable_model(name: str) -> Model:
    return load_model(LEG) if name == "leg" else oracle_model(name)[1]


@cache
def differentiated(name: str) -> tuple[Any, Any]:
    """Jitted, of x = (qpos, qvel, ctrl): the step's (qpos, qvel) and largest row force; its derivatives.

    The derivatives are those along a tangent in forward mode, and the product of a cotangent with that derivative in
    reverse mode.
    """
    model = differentiable_model(name)
    step, base = make_step(model, derived=True), initial_state(model, jnp.float64)

    def function(x: tuple[jax.Array, ...]) -> tuple[tuple[jax.Array, jax.Array], jax.Array]:
        following, fields = step(base._replace(qpos=x[0], qvel=x[1]), x[2])
        return (following.qpos, following.qvel), fields["efc_force"].max()

    def derivatives(x: Any, tangent: Any, cotangent: Any) -> tuple[Any, jax.Array]:
        def moved(x: Any) -> Any:
            return function(x)[0]

        _, forward = jax.jvp(moved, (x,), (tangent,))
        _, pull_back = jax.vjp(moved, x)
        (reverse,) = pull_back(cotangent)
        return forward, sum(jnp.vdot(r, t) for r, t in zip(reverse, tangent, strict=True))

    return quick_jit(function), quick_jit(derivatives)


@pytest.mark.parametrize(
    ("name", "height"),
    [
        ("leg", 0.3),
        ("leg", -0.1),
        pytest.param("hopper", -0.04, marks=pytest.mark.slow),
        pytest.param("half_cheetah", -0.12, marks=pytest.mark.slow),
    ],
)
def test_derivatives_agree_with_finite_differences(name: str, height: float) -> None:
    """Forward and reverse mode, in the air and in contact, at a state where no row changes side nearby."""
    model = differentiable_model(name)
    function, derivatives = differentiated(name)
    qpos = model.qpos0.copy()
    qpos[1] += height
    qpos[3:] -= 0.1
    x = (jnp.asarray(qpos), jnp.linspace(-0.5, 0.5, model.nv), jnp.full(model.nu, 0.3))
    rng = np.random.default_rng(0)
    tangent = tuple(jnp.asarray(rng.normal(size=leaf.shape)) for leaf in x)
    cotangent = tuple(jnp.asarray(rng.normal(size=leaf.shape)) for leaf in x[:2])
    eps = 1e-6
    (ahead, _), (behind, _) = (function(tuple(a + e * t for a, t in zip(x, tangent, strict=True))) for e in (eps, -eps))
    assert bool(function(x)[1] > 1.0) == (height < 0)

    forward, reverse = derivatives(x, tangent, cotangent)
    for actual, high, low in zip(forward, ahead, behind, strict=True):
        np.testing.assert_allclose(actual, (high - low) / (2 * eps), rtol=1e-5, atol=1e-5)
    expected = sum(float(jnp.vdot(c, f)) for c, f in zip(cotangent, forward, strict=True))
    np.testing.assert_allclose(float(reverse), expected, rtol=1e-9)


SLOW_TO_COMPILE = [pytest.param(name, marks=pytest.mark.slow) for name in ("ant", "pile")]


@pytest.mark.parametrize("name", [*SLOW_TO_COMPILE, "parallel_capsules"])
def test_derivatives_are_finite_where_norms_vanish(name: str) -> None:
    """At rest in the reference configuration: zero angular velocity, parallel axes, free quaternions."""
    _, model = oracle_model(name)
    base = initial_state(model, jnp.float64)

    def loss(state: State, ctrl: jax.Array) -> jax.Array:
        following = make_step(model)(state, ctrl)
        return jnp.sum(following.qpos**2) + jnp.sum(following.qvel**2)

    gradient = quick_jit(jax.grad(loss, argnums=(0, 1)))(base, jnp.zeros(model.nu))
    assert all(bool(jnp.isfinite(leaf).all()) for leaf in jax.tree.leaves(gradient))
    assert float(jnp.abs(gradient[0].qvel).max()) > 0


def test_gradient_through_a_rollout_in_contact() -> None:
    """A ball dropped on the floor: d(final height)/d(initial height) against a central difference."""
    xml = """<mujoco><option timestep="0.004"/><worldbody><geom type="plane" size="1 1 1" condim="1"/>
      <body pos="0 0 0.1"><joint type="slide" axis="0 0 1"/><geom size="0.1" mass="1"/></body></worldbody></mujoco>"""
    model = load_model(mujoco.MjModel.from_xml_string(xml))
    step, base = make_step(model), initial_state(model, jnp.float64)

    def final(height: jax.Array) -> jax.Array:
        start = base._replace(qpos=height[None])
        advance = partial(jax.lax.scan, lambda s, _: (step(s, jnp.zeros(0)), None), length=12)
        return advance(start, None)[0].qpos[0]

    function = quick_jit(final)
    h, eps = jnp.asarray(-0.002), 1e-6
    numeric = (function(h + eps) - function(h - eps)) / (2 * eps)
    np.testing.assert_allclose(quick_jit(jax.grad(final))(h), numeric, rtol=1e-5)
