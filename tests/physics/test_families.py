"""Worlds of many trees in JAX, by families of bodies: sums, matrices, linear systems, and steps against MuJoCo's."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from simengine import Simulation, load_model, make_step
from simengine.engines.jax_step import initial_state
from simengine.model.model import table_of
from simengine.physics.math import forest_jax, tree_jax
from simengine.physics.math import tree_matrices_jax as matrices
from simengine.physics.math.forest_jax import Forest, forest_of
from simengine.physics.solvers.solve_by_families_jax import solve_by_families

TREES = """
<mujoco>
  <option cone="{cone}" solver="{solver}" integrator="{integrator}" timestep="0.003" tolerance="1e-14"
    ls_tolerance="1e-10"><flag energy="enable"/></option>
  <default><geom friction="0.7 0.02 0.01" size="0.1" condim="{condim}"/></default>
  <worldbody>
    <geom type="plane" size="5 5 1"/>
    <body pos="0 0 0.1"><freejoint/><geom/></body>
    <body pos="0.05 0 0.28"><freejoint/><geom/></body>
    <body name="ball" pos="0.75 0.05 0.4">
      <joint type="ball" stiffness="2" damping="0.1" range="0 0.3" limited="true"/><geom size="0.05"/>
      <body pos="0 0 0.2">
        <joint axis="0 1 0" range="-0.2 0.2" limited="true" frictionloss="0.1" armature="0.01" damping="0.2"/>
        <geom size="0.04"/>
      </body>
    </body>
    <body pos="2 0 1">
      <geom size="0.05"/>
      <body pos="0.1 0 0"><joint axis="0 1 0"/><geom size="0.04"/></body>
      <body pos="-0.15 0 0">
        <joint axis="1 1 0"/><joint type="slide" axis="0 0 1" stiffness="5"/><geom size="0.06"/>
      </body>
    </body>
    <body mocap="true" pos="0.05 0 0.47"><geom/></body>
  </worldbody>
  <sensor><subtreeangmom body="ball"/></sensor>
</mujoco>
"""
PLAIN = {"cone": "pyramidal", "solver": "Newton", "integrator": "Euler", "condim": 3}
DERIVED = (
    *("qacc", "subtree_com", "cfrc_int", "cfrc_ext", "cacc", "qfrc_bias", "crb", "sensordata", "energy"),
    *("qfrc_passive", "cvel", "subtree_linvel", "subtree_angmom"),
)


def compiled(**options: Any) -> mujoco.MjModel:
    return mujoco.MjModel.from_xml_string(TREES.format(**PLAIN | options))


def split(m: Any) -> Forest:
    return forest_jax._forest(*forest_jax._structure(m))


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every world that can be is computed by families."""
    monkeypatch.setattr(forest_jax, "worth_families", lambda *_: True)


@pytest.fixture(scope="module")
def model() -> Any:
    return table_of(load_model(compiled()))


def test_large_worlds_of_small_trees_are_computed_by_families(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert forest_of(model) is None
    monkeypatch.setattr(forest_jax, "FEWEST_DOFS", 40)
    bodies = "".join(f'<body pos="{i} 0 1"><freejoint/><geom size="0.1"/></body>' for i in range(8))
    joints = '<joint axis="1 0 0"/><joint axis="0 1 0"/><joint axis="0 0 1"/>'
    chain = f'<body pos="0.1 0 0">{joints}<geom size="0.05"/>' * 14 + "</body>" * 14
    scenes = {
        "free bodies": ("", bodies),
        "PGS": ('<option solver="PGS"/>', bodies),
        "implicit": ('<option integrator="implicitfast"/>', bodies),
        "one tree": ("", chain),
    }
    text = '<mujoco>{}<default><geom contype="0"/></default><worldbody>{}</worldbody></mujoco>'
    found = {name: forest_of(table_of(load_model(text.format(*parts)))) for name, parts in scenes.items()}
    assert [name for name, forest in found.items() if forest is not None] == ["free bodies"]


def test_sums_over_families_are_those_over_all_bodies(model: Any, always: None) -> None:
    forest, rng = forest_of(model), np.random.default_rng(0)
    assert forest is not None
    of_dofs, of_bodies = jnp.asarray(rng.normal(size=(model.nv, 6))), jnp.asarray(rng.normal(size=(model.nbody, 6)))
    moves, inside = tree_jax.body_dofs(model), tree_jax.subtree(model)
    inside[0] = False
    np.testing.assert_allclose(forest_jax.moved(model, of_dofs), moves @ of_dofs, atol=1e-12)
    np.testing.assert_allclose(forest_jax.carried(model, of_bodies), moves.T @ of_bodies, atol=1e-12)
    np.testing.assert_allclose(forest_jax.subtree_sums(forest, of_bodies), inside @ of_bodies, atol=1e-12)
    for mask, dense in ((forest.above, tree_jax.dof_ancestors(model)), (forest.before, tree_jax.dofs_before(model))):
        found = forest.to_dofs(jnp.asarray(mask) @ forest.of_dofs(of_dofs))
        np.testing.assert_allclose(found, dense @ of_dofs, atol=1e-12)


def random_matrices(forest: Forest) -> tuple[matrices.TreeMatrix, matrices.TreeRows]:
    """An inertia and rows, some of which touch two families."""
    rng = np.random.default_rng(1)
    number, w = forest.dofs.shape
    real = forest.dofs < forest.nv
    root = rng.normal(size=(number, w, w)) * (real[:, :, None] & real[:, None])
    blocks = root @ root.transpose(0, 2, 1) + np.eye(w)
    families = rng.integers(number, size=(12, 2))
    families[:4, 1] = number
    values = rng.normal(size=(12, 2, w)) * np.append(real, [[False] * w], axis=0)[families]
    return matrices.TreeMatrix(jnp.asarray(blocks), forest), matrices.TreeRows(jnp.asarray(values), families, forest)


def test_matrices_by_families_do_what_dense_ones_do(model: Any) -> None:
    M, J = random_matrices(split(model))
    rng = np.random.default_rng(2)
    x, f = jnp.asarray(rng.normal(size=model.nv)), jnp.asarray(rng.normal(size=12))
    half = matrices.TreeRows(J.values[:, :1], J.families[:, :1], J.forest)

    @jax.jit
    def products(M: Any, J: Any, half: Any) -> list[jax.Array]:
        return [
            *(matrices.times(M, x), matrices.times(J, x), matrices.pulled(f, J)),
            matrices.times(matrices.plus_diagonal(M, x * x), x),
            matrices.solve_factored(matrices.factor(M), x),
            matrices.solve(M, x),
            matrices.times(matrices.scaled(J, f), x),
            matrices.times(matrices.stacked([half, J]), x),
        ]

    dense = products(M.dense(), J.dense(), half.dense())
    for found, expected in zip(products(M, J, half), dense, strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-10)


def test_systems_with_rows_between_families_are_solved(model: Any) -> None:
    M, J = random_matrices(split(model))
    weight = jnp.asarray(np.random.default_rng(3).uniform(0, 100, 12))
    rhs = jnp.asarray(np.random.default_rng(4).normal(size=model.nv))
    H = np.asarray(M.dense() + J.dense().T @ (weight[:, None] * J.dense()))
    found = solve_by_families(M, J, matrices.scaled(J, weight), rhs)
    np.testing.assert_allclose(H @ found, rhs, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"cone": "elliptic", "condim": 6, "integrator": "RK4"},
        {"condim": 1},
        {"cone": "elliptic", "condim": 4, "solver": "CG"},
    ],
    ids=lambda options: " ".join(map(str, options.values())) or "plain",
)
def test_steps_by_families_are_those_of_mujoco(options: dict[str, Any], always: None) -> None:
    mj = compiled(**options)
    data, rng = mujoco.MjData(mj), np.random.default_rng(0)
    data.qvel[:] = 0.3 * rng.normal(size=mj.nv)
    sim = Simulation(load_model(mj), 2, backend="jax", dtype="float64")
    sim.set_state(qpos=data.qpos, qvel=data.qvel)
    for _ in range(20):
        mujoco.mj_step(mj, data)
        sim.step()
        np.testing.assert_allclose(np.asarray(sim.qpos)[1], data.qpos, atol=2e-8)
        sim.set_state(qpos=data.qpos, qvel=data.qvel)
    mujoco.mj_forward(mj, data)
    mujoco.mj_subtreeVel(mj, data)
    mujoco.mj_rnePostConstraint(mj, data)
    sim.forward()
    assert data.ncon > 1
    for name in DERIVED:
        theirs = np.asarray(getattr(data, name))
        scale = max(1.0, float(np.abs(theirs).max()))
        np.testing.assert_allclose(np.asarray(sim.field(name))[1], theirs, atol=1e-6 * scale, err_msg=name)
    full = np.zeros((mj.nv, mj.nv))
    mujoco.mj_fullM(mj, data, full)
    np.testing.assert_allclose(np.asarray(sim.field("qM"))[1], full, atol=1e-12)


@pytest.mark.slow
def test_a_step_by_families_is_differentiable_in_both_modes(always: None) -> None:
    bodies = "".join(f'<body pos="0 0 {z}"><freejoint/><geom size="0.1"/></body>' for z in (0.099, 0.28))
    scene = f'<option tolerance="1e-14"/><worldbody><geom type="plane" size="5 5 1"/>{bodies}</worldbody>'
    model = load_model(f"<mujoco>{scene}</mujoco>")
    step, state = make_step(model), initial_state(model, jnp.float64)
    weights, qvel = (jnp.asarray(np.random.default_rng(i).normal(size=12)) for i in range(2))

    @jax.jit
    def weighed(qvel: jax.Array) -> jax.Array:
        return jnp.dot(weights, step(state._replace(qvel=0.1 * qvel), jnp.zeros(0)).qvel)

    small = 1e-5 * np.eye(12)
    expected = np.array([(weighed(qvel + d) - weighed(qvel - d)) / 2e-5 for d in small])
    np.testing.assert_allclose(jax.jit(jax.grad(weighed))(qvel), expected, atol=1e-7)
    along = jax.jit(lambda v, d: jax.jvp(weighed, (v,), (d,))[1])(qvel, weights)
    np.testing.assert_allclose(along, expected @ weights, atol=1e-7)
