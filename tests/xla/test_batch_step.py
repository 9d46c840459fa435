"""Steps inside JAX programs: the bits of `Simulation.step`, under every transformation of JAX."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import simengine
from tests.xla.steps import WORLDS, controls, model_of, simulated, spread

STEPS = 12
SCANNED = ("ant", "half_cheetah", "actuators", "tendons", "linkage", "terrain")

pytestmark = pytest.mark.usefixtures("small_numbers")


def test_a_state_is_a_tree_of_the_arrays_that_have_entries() -> None:
    """XLA of jaxlib 0.11.2 crashes where `jax.shard_map` returns an array without entries."""
    state = simengine.initial_state(model_of("ant"), num_worlds=WORLDS)
    assert state.act.shape == (WORLDS, 0)
    assert state.mocap_quat.shape == (WORLDS, 0, 4)
    assert all(leaf.size for leaf in jax.tree.leaves(state))
    half = jax.tree.map(lambda x: x[:2], state)
    assert half.mocap_quat.shape == (2, 0, 4)
    assert half.mocap_quat.dtype == state.qpos.dtype
    specs = jax.tree.map(lambda _: "worlds", state)
    assert jax.tree.structure(specs) == jax.tree.structure(state) == jax.tree.structure(half)
    shapes = jax.eval_shape(lambda s: jax.vmap(lambda own: own)(s), jax.tree.map(lambda x: x[None], state))
    assert shapes.act.shape == (1, WORLDS, 0)
    paths = [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(state)]
    assert ".qpos" in paths
    assert ".act" not in paths
    named = [leaf for _, leaf in jax.tree_util.tree_leaves_with_path(state)]
    assert all(one is other for one, other in zip(named, jax.tree.leaves(state), strict=True))
    acting = simengine.initial_state(model_of("actuators"), num_worlds=WORLDS)
    assert any(leaf is acting.act for leaf in jax.tree.leaves(acting))


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        *((name, "float32") for name in ("ant", "tendons", "terrain")),
        *(pytest.param(name, "float32", marks=pytest.mark.slow) for name in ("half_cheetah", "actuators", "linkage")),
        ("ant", "float64"),
        *(pytest.param(name, "float64", marks=pytest.mark.slow) for name in SCANNED[1:]),
        *(pytest.param("rubble", dtype, marks=pytest.mark.slow) for dtype in ("float32", "float64")),
    ],
)
def test_a_scan_of_steps_has_the_bits_of_a_simulation(name: str, dtype: str) -> None:
    jax.config.update("jax_enable_x64", dtype == "float64")
    model = model_of(name)
    ctrl = controls(model, STEPS, WORLDS, dtype)
    step = simengine.make_step(model, backend="host", steps=2, keep=("xpos", "qfrc_bias"))
    first = spread(simengine.initial_state(model, dtype, num_worlds=WORLDS))
    last, kept = jax.jit(lambda s, c: jax.lax.scan(step, s, c))(first, ctrl)
    options: dict[str, Any] = {"dtype": dtype, "keep": ("xpos", "qfrc_bias"), "on_nonfinite": "freeze"}
    sim = simengine.Simulation(model, WORLDS, backend="host", **options)
    simulated(sim, first, ctrl, 2)
    for field in ("qpos", "qvel", "act", "qacc_warmstart", "nstep", "world_status"):
        np.testing.assert_array_equal(getattr(last, field), sim.field(field), err_msg=field)
    for field in ("xpos", "qfrc_bias"):
        np.testing.assert_array_equal(kept[field][-1], sim.field(field), err_msg=field)
    assert not last.stalled.any()
    assert np.abs(np.asarray(last.qvel) - np.asarray(first.qvel)).max() > 1e-3


def test_forward_gives_what_a_simulation_evaluates() -> None:
    model = model_of("humanoid")
    state = spread(simengine.initial_state(model, num_worlds=WORLDS))
    ctrl = controls(model, 1, WORLDS)[0]
    names = ("qacc", "xipos", "cinert", "qfrc_actuator", "qfrc_constraint")
    found = jax.jit(simengine.make_forward(model, backend="host", keep=names))(state, ctrl)
    sim = simengine.Simulation(model, WORLDS, backend="host")
    sim.set_state(qpos=np.asarray(state.qpos), qvel=np.asarray(state.qvel), ctrl=ctrl)
    sim.forward()
    for name in names:
        np.testing.assert_array_equal(found[name], sim.field(name), err_msg=name)


@pytest.mark.parametrize("name", ["rubble", pytest.param("humanoid", marks=pytest.mark.slow)])
def test_what_else_is_kept_changes_no_field_of_forward(name: str) -> None:
    """An evaluation makes only the calls that the fields need which it keeps."""
    model = model_of(name)
    state = spread(simengine.initial_state(model, num_worlds=WORLDS))
    ctrl = controls(model, 1, WORLDS)[0]
    alone = ("site_xpos", "cvel", "qfrc_actuator", "qfrc_bias", "ncon", "qacc_smooth", "cfrc_ext", "qacc")
    every = simengine.make_forward(model, backend="host", keep=alone)
    expected = every(state, ctrl)
    for field in alone:
        forward = simengine.make_forward(model, backend="host", keep=(field,))
        np.testing.assert_array_equal(forward(state, ctrl)[field], expected[field], err_msg=field)


@pytest.mark.parametrize("name", ["ant", "rubble"])
def test_forward_evaluates_chosen_worlds(name: str) -> None:
    """Masks change from call to call, so that what an earlier call counted must not count again."""
    model, worlds = model_of(name), 150
    state = spread(simengine.initial_state(model, num_worlds=worlds))
    state = simengine.make_step(model, backend="host", steps=40)(state, jnp.zeros((worlds, model.nu)))
    forward = jax.jit(simengine.make_forward(model, backend="host", keep=("qacc", "ncon")))
    whole = forward(state, jnp.zeros((worlds, model.nu)))
    rng = np.random.default_rng(0)
    for share in (0.5, 1.0, 0.02, 0.0, 0.9):
        mask = rng.random(worlds) < share
        some = forward(state, jnp.zeros((worlds, model.nu)), None, mask)
        for field, values in whole.items():
            expected = np.where(mask.reshape(-1, *(1,) * (values.ndim - 1)), values, 0)
            np.testing.assert_array_equal(some[field], expected, err_msg=f"{field} {share}")
    assert int(whole["ncon"].sum()) > worlds


def test_parameters_are_arguments() -> None:
    """Every world has its own masses and frictions, and a second call has others."""
    model = model_of("ant")
    step = jax.jit(simengine.make_step(model, backend="host", steps=20))
    ctrl = controls(model, 1, WORLDS)[0]
    start = spread(simengine.initial_state(model, num_worlds=WORLDS))
    ends = []
    for seed in (0, 1):
        scale = np.random.default_rng(seed).uniform(0.5, 2.0, (WORLDS, 1)).astype(np.float32)
        mass = jnp.asarray(model.mj.body_mass[None] * scale, jnp.float32)
        friction = jnp.asarray(model.mj.geom_friction[None] * scale[..., None], jnp.float32)
        params = jax.vmap(lambda m, f: simengine.make_params(model, body_mass=m, geom_friction=f))(mass, friction)
        state = step(start, ctrl, params)
        sim = simengine.Simulation(model, WORLDS, backend="host")
        sim.set_params(body_mass=np.asarray(mass), geom_friction=np.asarray(friction))
        simulated(sim, start, ctrl[None], 20)
        np.testing.assert_allclose(state.qpos, sim.qpos, atol=2e-4)
        ends.append(np.asarray(state.qpos))
    assert np.abs(ends[0] - ends[1]).max() > 5e-3


def test_damping_as_a_parameter_is_integrated_implicitly() -> None:
    model = simengine.load_model(
        '<mujoco><worldbody><body><joint type="hinge" axis="0 1 0"/><geom size="0.1" pos="0.5 0 0"/></body>'
        "</worldbody></mujoco>"
    )
    damping = jnp.asarray([[0.0], [500.0]])
    params = jax.vmap(lambda d: simengine.make_params(model, dof_damping=d))(damping)
    state = simengine.initial_state(model, num_worlds=2)
    state = simengine.make_step(model, backend="host", steps=200)(state, jnp.zeros((2, 0)), params)
    sim = simengine.Simulation(model, 2, backend="host")
    sim.set_params(dof_damping=np.asarray(damping))
    sim.step(200)
    np.testing.assert_allclose(state.qpos, sim.qpos, atol=1e-6)
    assert abs(float(state.qpos[1, 0])) < 0.1 < abs(float(state.qpos[0, 0]))


def test_worlds_of_a_vmap_are_worlds_of_one_call() -> None:
    model = model_of("half_cheetah")
    step = simengine.make_step(model, backend="host", steps=3)
    whole = spread(simengine.initial_state(model, num_worlds=12))
    ctrl = jnp.asarray(controls(model, 1, 12)[0])
    parts = jax.tree.map(lambda x: x.reshape(2, 3, 2, *x.shape[1:]), whole)
    nested = jax.jit(jax.vmap(jax.vmap(step)))(parts, ctrl.reshape(2, 3, 2, -1))
    shared = jax.vmap(step, in_axes=(0, None))(jax.tree.map(lambda x: x[0], parts), jnp.zeros((2, model.nu)))
    np.testing.assert_array_equal(nested.qpos.reshape(12, -1), step(whole, ctrl).qpos)
    assert shared.qpos.shape == (3, 2, model.nq)


SHARDED = """
import jax, jax.numpy as jnp, numpy as np, simengine
from jax.sharding import Mesh, PartitionSpec as P
model = simengine.load_model("half_cheetah")
assert len(jax.devices()) == 4
step = simengine.make_step(model, backend="host", steps=3)
state = simengine.initial_state(model, num_worlds=16)
state = state._replace(qvel=jnp.asarray(np.random.default_rng(0).normal(size=(16, model.nv)), jnp.float32))
ctrl = jnp.full((16, model.nu), 0.2)
spec = jax.tree.map(lambda _: P("worlds"), state)
mesh = Mesh(np.array(jax.devices()), ("worlds",))
sharded = jax.jit(jax.shard_map(step, mesh=mesh, in_specs=(spec, P("worlds")), out_specs=spec))
for _ in range(5):
    split, whole = sharded(state, ctrl), step(state, ctrl)
    assert (np.asarray(split.qpos) == np.asarray(whole.qpos)).all()
    state = whole
print("same", len(split.qpos.sharding.device_set))
"""


def test_shard_map_over_devices_has_the_same_bits() -> None:
    command = [sys.executable, "-c", SHARDED]
    env = os.environ | {"XLA_FLAGS": "--xla_force_host_platform_device_count=4"}
    answer = subprocess.run(command, capture_output=True, text=True, env=env, check=False, timeout=120)
    assert answer.stdout.strip() == "same 4", answer.stderr


def test_a_world_that_is_not_finite_keeps_its_state_and_leaves_others_alone() -> None:
    model = model_of("half_cheetah")
    step = jax.jit(simengine.make_step(model, backend="host", steps=2))
    start = spread(simengine.initial_state(model, num_worlds=WORLDS))
    ctrl = controls(model, 1, WORLDS)[0]
    bad = ctrl.copy()
    bad[2, 0] = np.nan
    good, hurt = step(start, ctrl), step(start, bad)
    assert hurt.world_status.tolist() == [0, 0, 1, 0, 0]
    assert hurt.stalled.tolist() == [0] * WORLDS
    np.testing.assert_array_equal(hurt.qpos[2], start.qpos[2])
    np.testing.assert_array_equal(np.delete(hurt.qpos, 2, 0), np.delete(good.qpos, 2, 0))


def test_the_jax_form_agrees() -> None:
    model = model_of("half_cheetah")
    start = spread(simengine.initial_state(model, num_worlds=WORLDS))
    ctrl = controls(model, 1, WORLDS)[0]
    results = [
        jax.jit(simengine.make_step(model, backend=name, steps=3, keep=("xpos",)))(start, ctrl)
        for name in ("host", "jax")
    ]
    np.testing.assert_allclose(results[0][0].qpos, results[1][0].qpos, atol=2e-5)
    np.testing.assert_allclose(results[0][1]["xpos"], results[1][1]["xpos"], atol=2e-5)
    assert results[0][0].nstep.tolist() == results[1][0].nstep.tolist() == [3] * WORLDS


def test_a_derivative_is_refused_with_what_to_use_instead() -> None:
    model = model_of("half_cheetah")
    step = simengine.make_step(model, backend="host")
    state = simengine.initial_state(model, num_worlds=1)
    with pytest.raises(TypeError, match=r"no derivative; use simengine.make_step\(model\)"):
        jax.grad(lambda q: step(state._replace(qpos=q), jnp.zeros((1, model.nu))).qpos.sum())(state.qpos)


def test_wrong_arguments_are_named() -> None:
    model = model_of("half_cheetah")
    step = simengine.make_step(model, backend="host")
    state, ctrl = simengine.initial_state(model, num_worlds=2), jnp.zeros((2, model.nu))
    cases: list[tuple[type[Exception], str, tuple[Any, ...]]] = [
        (ValueError, r"ctrl has shape \(3, 6\), expected \(2, 6\)", (state, jnp.zeros((3, 6)))),
        (TypeError, "ctrl has type int32, expected float32", (state, jnp.zeros((2, 6), jnp.int32))),
        (ValueError, r"state.qvel has shape \(2, 4\)", (state._replace(qvel=jnp.zeros((2, 4))), ctrl)),
        (TypeError, "give a simengine.BatchState", (simengine.initial_state(model), ctrl)),
        (ValueError, "'body_mas'.*did you mean 'body_mass'", (state, ctrl, {"body_mas": jnp.zeros((2, 8))})),
        (ValueError, "vmap simengine.make_params", (state, ctrl, {"body_mass": jnp.zeros((3, 8))})),
    ]
    for kind, said, arguments in cases:
        with pytest.raises(kind, match=said):
            step(*arguments)
    for kind, said, options in (
        (ValueError, "steps is 0", {"backend": "host", "steps": 0}),
        (ValueError, "did you mean 'xpos'", {"backend": "host", "keep": ("xpo",)}),
        (ValueError, "did you mean 'host'", {"backend": "hosts"}),
        (ValueError, "give backend='auto', or leave out steps", {"steps": 4}),
        (ValueError, "'qpos', which a step inside JAX does not return", {"backend": "host", "keep": ("qpos",)}),
    ):
        with pytest.raises(kind, match=said):
            simengine.make_step(model, **options)  # type: ignore[call-overload]
