"""`make_step` and `make_forward`: against MuJoCo's steps, and under JAX's transformations. Derivatives have their own
tests, `test_gradients.py`."""

from __future__ import annotations

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from simengine.engines.jax_step import State, initial_state, make_forward, make_step
from simengine.model import load_table
from tests.helpers.oracle import Sample, collect, error, oracle_model, quick_jit, states_of
from tests.models import ALL, compile_model

STEP_TOLERANCE = {"float64": 1e-6, "float32": 1e-3}

DERIVED = ("hopper", "half_cheetah")
"""Models that Runge-Kutta and Euler step, whose steps give their derived fields too."""


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
    states = Sample(*map(np.stack, zip(*before, strict=True)))
    return states, np.stack(warm), after


def batch(name: str, dtype: str, steps: int) -> tuple[State, jax.Array]:
    """States along a trajectory with their warm starts, and the controls, for the JAX functions."""
    states, warm, _ = trajectory(name, steps)
    state, ctrl = states_of(oracle_model(name)[1], states, dtype)
    return state._replace(qacc_warmstart=jnp.asarray(warm, dtype)), ctrl


@cache
def stepped(name: str, dtype: str, steps: int) -> tuple[State, dict[str, jax.Array]]:
    """States after a step from each along a trajectory, and the derived fields of `DERIVED` models."""
    _, model = oracle_model(name)
    step = make_step(model, derived=True) if name in DERIVED else lambda *start: (make_step(model)(*start), {})
    with jax.numpy_dtype_promotion("strict"), jax.numpy_rank_promotion("raise"):
        found: tuple[State, dict[str, jax.Array]] = quick_jit(jax.vmap(step))(*batch(name, dtype, steps))
    return found


def worst_step_error(name: str, dtype: str, steps: int) -> dict[str, float]:
    after = trajectory(name, steps)[-1]
    following, _ = stepped(name, dtype, steps)
    assert following.qpos.dtype == dtype
    return {
        field: max(error(np.asarray(getattr(following, field)[i]), after[i][field]) for i in range(steps))
        for field in ("qpos", "qvel")
    }


@pytest.mark.parametrize("dtype", [pytest.param("float64", marks=pytest.mark.slow), "float32"])
def test_ant_steps_as_mujoco_along_a_trajectory(dtype: str) -> None:
    after = trajectory("ant", 1000)[-1]
    assert sum(int(f["ncon"]) > 0 for f in after) > 300
    assert sum(int(f["nefc"]) for f in after) > 2000
    worst = worst_step_error("ant", dtype, 1000)
    assert max(worst.values()) < STEP_TOLERANCE[dtype], worst


STEPPED = (
    "half_cheetah",
    *(
        pytest.param(name, marks=pytest.mark.slow)
        for name in ("hopper", "crates", "dual", "linkage", "ragdoll", "ropes")
    ),
)
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


@pytest.mark.parametrize("name", DERIVED)
def test_derived_fields_are_those_mujoco_leaves_after_a_step(name: str) -> None:
    """Runge-Kutta leaves the fourth evaluation's fields but the mean qacc; Euler those of the state stepped from."""
    after = trajectory(name, 200)[-1]
    following, fields = stepped(name, "float64", 200)
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
    model = load_table(mj)
    state = initial_state(model, jnp.float64)._replace(qpos=jnp.asarray(data.qpos), qvel=jnp.asarray(data.qvel))
    following = quick_jit(make_step(model))(state, jnp.asarray(data.ctrl))
    mujoco.mj_step(mj, data)
    np.testing.assert_allclose(following.qpos, data.qpos, atol=1e-9)
    np.testing.assert_allclose(following.qvel, data.qvel, atol=1e-8)


def test_initial_state_is_the_reference_at_rest() -> None:
    model = load_table(compile_model("ant"))
    state = initial_state(model)
    assert {leaf.dtype for leaf in state} == {jnp.dtype("float32")}
    np.testing.assert_array_equal(state.qpos, model.qpos0.astype(np.float32))
    assert state.qvel.shape == (14,)
    assert state.xfrc_applied.shape == (model.nbody, 6)
    assert float(state.time) == 0


@pytest.mark.parametrize("make", [make_step, make_forward])
@pytest.mark.parametrize(
    ("changes", "ctrl", "message"),
    [
        ({}, jnp.zeros(3), r"ctrl has shape \(3,\), expected \(1,\); vmap"),
        ({}, 0.5, r"ctrl has shape \(\), expected \(1,\)"),
        ({"qpos": jnp.zeros((4, 2))}, jnp.zeros(1), r"qpos has shape \(4, 2\), expected \(2,\); vmap"),
        ({"xfrc_applied": jnp.zeros(6)}, jnp.zeros(1), r"xfrc_applied has shape \(6,\), expected \(3, 6\)"),
    ],
)
def test_wrong_shapes_are_named(make: Any, changes: dict[str, jax.Array], ctrl: Any, message: str) -> None:
    _, model = oracle_model("inverted_pendulum")
    with pytest.raises(ValueError, match=message):
        make(model)(initial_state(model)._replace(**changes), ctrl)


def test_a_state_of_another_kind_is_refused() -> None:
    _, model = oracle_model("inverted_pendulum")
    with pytest.raises(TypeError, match=r"the state is a dict; give a simengine\.State"):
        make_step(model)({"qpos": jnp.zeros(2)}, jnp.zeros(1))


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
