"""Derivatives of `make_step`, forward and reverse, against central differences in float64, and finite everywhere.

A central difference says nothing across a kink of the step (see docs/gradients.md): states where the differences ahead
and behind disagree are left out, and must be few.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from copy import copy
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from simengine.engines.jax_step import State, initial_state, make_step
from simengine.model import ModelTable, load_table
from simengine.physics.constraints.row_law_jax import RowLaw
from simengine.physics.solvers.solve_cg_jax import solve_cg
from simengine.physics.solvers.solve_newton_general_jax import solve_newton_general
from simengine.physics.solvers.solve_newton_unilateral_jax import solve_newton_unilateral
from simengine.physics.solvers.solve_pgs_jax import solve_pgs
from simengine.physics.tendons.wrap_jax import wrap
from tests.helpers.oracle import oracle_model, quick_jit, sample, states_of

Vectors = tuple[jax.Array, ...]
"""Arrays whose first axis counts states."""

KINK = 0.01
"""Relative difference of the one-sided differences from which on a state counts as next to a kink."""

LEG = """<mujoco><option timestep="0.005" integrator="RK4" tolerance="1e-12"/><worldbody>
  <geom type="plane" size="1 1 1"/>
  <body pos="0 0 0.5"><joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 0 1"/>
    <geom size="0.1" mass="2"/>
    <body><joint name="hip" type="hinge" axis="0 1 0" range="-60 5" limited="true" damping="0.1"/>
      <geom type="capsule" fromto="0 0 -0.05 0.1 0 -0.38" size="0.05" mass="0.5"/></body></body></worldbody>
  <actuator><motor joint="hip" gear="5"/></actuator></mujoco>"""

GADGET = """<mujoco>
  <option timestep="0.004" cone="elliptic" integrator="Euler" tolerance="1e-12" iterations="2000"/>
  <default><geom density="800" condim="3"/></default>
  <worldbody>
    <geom type="plane" size="2 2 1"/>
    <site name="hook" pos="0.34 0.02 0.56"/>
    <geom name="pulley" type="sphere" size="0.06" pos="0.176 0 0.468" contype="0" conaffinity="0"/>
    <body pos="0 0 0.1">
      <joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 0 1"/><joint name="turn" type="hinge" axis="0 1 0"/>
      <geom size="0.1" condim="4"/>
    </body>
    <body pos="0 0 0.6">
      <joint type="ball" range="0 20" limited="true" damping="0.1"/>
      <geom type="capsule" fromto="0 0 0 0 0 -0.25" size="0.03" contype="0" conaffinity="0"/>
      <site name="wrist" pos="0 0 -0.22"/>
      <body pos="0 0 -0.3">
        <joint name="bend" type="hinge" axis="0 1 0" frictionloss="0.05"/><geom size="0.06" pos="0 0 -0.1"/>
      </body>
    </body>
  </worldbody>
  <tendon>
    <spatial name="cord" frictionloss="0.1" stiffness="20" springlength="0.1">
      <site site="hook"/><geom geom="pulley"/><site site="wrist"/>
    </spatial>
  </tendon>
  <equality><joint joint1="bend" joint2="turn" polycoef="0.1 0.8 0.3 0 0"/></equality>
  <actuator><muscle tendon="cord" force="30" lengthrange="0.2 0.5"/><motor joint="bend" gear="0.5"/></actuator>
</mujoco>"""
"""A ball rolls on the floor and is pushed by a hand on an arm with a limit, which a muscle pulls over a pulley."""


def flat(arrays: Vectors) -> np.ndarray:
    """Arrays side by side, (n, ...)."""
    return np.concatenate([np.asarray(a).reshape(len(a), -1) for a in arrays], axis=1)


def directions(arrays: Vectors, seed: int) -> Vectors:
    """Random arrays of the same shapes."""
    rng = np.random.default_rng(seed)
    return tuple(jnp.asarray(rng.normal(size=a.shape)) for a in arrays)


def check(
    function: Callable[[Any], Vectors], x: Vectors, rtol: float = 1e-6, h: float = 1e-6, skip: int = 0
) -> Vectors:
    """Compare the derivatives of a function of one state at n states; returns its values.

    Forward mode must agree with central differences, reverse mode with forward mode. In the first `skip` states, which
    are degenerate, only they are finite.
    """

    def everything(x: Any, tangent: Any, cotangent: Any) -> tuple[Vectors, Vectors, Vectors]:
        value, forward = jax.jvp(function, (x,), (tangent,))
        return value, forward, jax.vjp(function, x)[1](cotangent)[0]

    # one program for all, since compiling it takes nearly all of the time
    compiled = quick_jit(jax.vmap(everything))
    tangent, cotangent = directions(x, 1), directions(jax.eval_shape(jax.vmap(function), x), 2)
    value, *derivatives = compiled(x, tangent, cotangent)
    forward, reverse = map(flat, derivatives)
    assert np.isfinite(forward).all()
    assert np.isfinite(reverse).all()
    along, against = (flat(cotangent) * forward).sum(axis=1), (reverse * flat(tangent)).sum(axis=1)
    np.testing.assert_allclose(against, along, rtol=1e-8, atol=1e-8)

    here = flat(value)
    beside = (tuple(a + e * t for a, t in zip(x, tangent, strict=True)) for e in (h, -h, 2 * h, -2 * h))
    there, back, beyond, behind = (flat(compiled(point, tangent, cotangent)[0]) for point in beside)
    # of fourth order: curvature of a stiff model is felt in the second
    central = (8 * (there - back) - (beyond - behind)) / (12 * h)
    jump = np.abs(there - 2 * here + back).max(axis=1) / h
    scale = np.maximum(1.0, np.abs(central).max(axis=1))
    smooth = np.flatnonzero(jump < KINK * scale)
    smooth = smooth[smooth >= skip]
    assert len(smooth) > 0.7 * (len(here) - skip), "too many states are next to a kink"
    error = np.abs(forward - central).max(axis=1) / scale
    assert error[smooth].max() < rtol, error
    return value


def step_of(model: ModelTable, base: State) -> Callable[[Any], Vectors]:
    """The step of (qpos, qvel, act, ctrl), to which it adds the largest force of a row; the rest is `base`'s."""
    step = make_step(model, derived=True)

    def function(x: Any) -> Vectors:
        following, fields = step(base._replace(qpos=x[0], qvel=x[1], act=x[2]), x[3])
        return following.qpos, following.qvel, following.act, fields["efc_force"].max()

    return function


@pytest.mark.slow
def test_derivatives_with_pyramids_and_runge_kutta() -> None:
    """In the air and in contact, with limits: the lean solver."""
    model = load_table(LEG)
    qpos = model.qpos0 + np.array([[0, 0.3, 0.02], [0, -0.1, 0.02], [0, -0.1, -0.1], [0, -0.12, 0.1]])
    n = len(qpos)
    x = (qpos, np.tile(np.linspace(-0.5, 0.5, model.nv), (n, 1)), np.zeros((n, 0)), np.full((n, model.nu), 0.3))
    *_, force = check(step_of(model, initial_state(model, jnp.float64)), tuple(map(jnp.asarray, x)))
    assert (np.asarray(force) > 1.0).sum() >= 3


DEGENERATE = 3


def gadget_states(model: ModelTable, n: int = 12) -> Vectors:
    """(qpos, qvel, act, ctrl) of n states, the first at rest: the ball just touches; the tendon ends in the pulley's
    centre; it misses the pulley. The others are in motion and in contact, some beyond the limit.
    """
    rng = np.random.default_rng(0)
    qpos = np.tile(model.qpos0, (n, 1))
    qpos[1:DEGENERATE, 3:7] = (2, 0, -1, 0), (1, 0, 1, 0)
    spread = np.array([0.02, 0.01, 0.2, 0.1, 0.1, 0.1, 0.1, 0.2])
    qpos[DEGENERATE:] += spread * rng.normal(size=(n - DEGENERATE, model.nq)) - 0.01 * (np.arange(model.nq) == 1)
    qvel = 0.5 * rng.normal(size=(n, model.nv))
    qvel[:DEGENERATE] = 0
    return tuple(map(jnp.asarray, (qpos, qvel, np.full((n, model.na), 0.4), np.full((n, model.nu), 0.6))))


VARIANTS = [
    {},
    {"solver": "CG", "integrator": "implicitfast", "tolerance": "0"},  # which lets CG go on to the optimum
    {"solver": "PGS", "cone": "pyramidal", "integrator": "implicit"},
    {"cone": "pyramidal", "integrator": "RK4"},
]


@pytest.mark.slow
@pytest.mark.parametrize("options", VARIANTS, ids=["-".join(("gadget", *v.values())) for v in VARIANTS])
def test_derivatives_of_a_step_with_much_in_it(options: dict[str, str]) -> None:
    """Elliptic cones, friction losses, a ball joint's limit, an equality, a wrapped tendon, a muscle's activation."""
    text = GADGET
    for name, value in options.items():
        text = text.replace(f"{name}=", "old=").replace("<option ", f'<option {name}="{value}" ', 1)
    text = re.sub(r' old="[^"]*"', "", text)
    model = load_table(text)
    solvers = {"Newton": "solve_newton_general", "CG": "solve_cg", "PGS": "solve_pgs"}
    assert model.solver == solvers[options.get("solver", "Newton")]
    assert model.opt_integrator == options.get("integrator", "Euler").lower()
    exact = model.solver != "solve_pgs"
    function = step_of(model, initial_state(model, jnp.float64))
    check(function, gadget_states(model), *((1e-6, 1e-6) if exact else (1e-4, 1e-5)), skip=DEGENERATE)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["hopper", "linkage", "rollers", "ragdoll", "ropes", "glider", "actuators", "crates"])
def test_derivatives_of_a_step_of_models(name: str) -> None:
    """Models that between them have all solvers that converge, all integrators, and rows and forces of every type."""
    mj, model = oracle_model(name)
    if model.solver == "solve_cg":  # ends where the cost hardly falls, which leaves too much for differences
        mj = copy(mj)
        mj.opt.tolerance = 0
        model = load_table(mj)
    states, ctrl = states_of(model, sample(name, 8), "float64")
    base = jax.tree.map(lambda leaf: leaf[0], states)
    check(step_of(model, base), (states.qpos, states.qvel, states.act, ctrl))


def problem(nv: int, rows: int, n: int) -> Vectors:
    """n random problems: qM (n, nv, nv), qfrc_smooth (n, nv), efc_J (n, rows, nv), efc_D, efc_aref (n, rows)."""
    rng = np.random.default_rng(0)
    half = rng.normal(size=(n, nv, nv))
    M = half @ half.transpose(0, 2, 1) + 3.0 * np.eye(nv)
    D = rng.uniform(0.5, 2.0, size=(n, rows))
    J, aref = rng.normal(size=(n, rows, nv)), 2.0 * rng.normal(size=(n, rows))
    return tuple(map(jnp.asarray, (M, 3.0 * rng.normal(size=(n, nv)), J, D, aref)))


def regularised(law: RowLaw, D: jax.Array) -> jax.Array:
    """D (rows,) in which the rows of a cone depend on its first as MuJoCo makes them: in proportion to friction^2."""
    sub = np.arange(law.first.size) - law.first
    friction = law.cone_friction[law.first]
    own = friction[np.arange(sub.size), np.maximum(sub - 1, 0)] if law.most > 1 else np.ones(sub.size)
    return D[law.first] * np.where(sub > 0, (own / friction[:, :1].sum(axis=1).clip(1e-9)) ** 2, 1.0)


@pytest.mark.parametrize(
    "solver",
    [
        *(solve_newton_unilateral, solve_newton_general),
        *(pytest.param(solver, marks=pytest.mark.slow) for solver in (solve_cg, solve_pgs)),  # the same rule elsewhere
    ],
    ids=lambda s: s.__name__,
)
def test_derivatives_of_the_solution(solver: Callable[..., Vectors]) -> None:
    """By every argument, with rows of all types that the solver knows, some of which do not exist."""
    cone = "pyramidal" if solver is solve_pgs else "elliptic"  # with elliptic cones PGS misses the optimum
    text = LEG if solver is solve_newton_unilateral else GADGET.replace("elliptic", cone)
    if solver is solve_cg:  # ends where the cost hardly falls, which leaves too much for differences
        text = text.replace('tolerance="1e-12"', 'tolerance="0"')
    model = load_table(text)
    law = RowLaw(model)
    exists = jnp.asarray(law.first % 8 < 6)

    def function(x: Any) -> Vectors:
        M, smooth, J, D, aref = x
        M = 0.5 * (M + M.T)
        factor = jnp.linalg.cholesky(M)
        start = jax.scipy.linalg.cho_solve((factor, True), smooth)
        factors = () if solver is solve_newton_unilateral else (factor,)
        warm = jnp.zeros(model.nv)
        return solver(model, M, *factors, smooth, start, warm, exists, J, regularised(law, D), aref)

    check(function, problem(model.nv, model.nefc_max, 12), *((1e-4, 1e-5) if solver is solve_pgs else ()))


PATHS = np.array(
    [
        [[0, 0, 0], [2, 0, 0], [0, 0, 0]],
        [[0, 0, 0], [0, 0, 0], [0, 0, 0]],
        [[2, 0, 0], [-2, 0, 0], [0, 1.5, 0]],
        [[2, 0, 0], [-2, 0, 0], [0, 0.5, 0]],
        [[2, 0, 0], [3, 0, 0], [0, 0, 0]],
        [[2, 0, 0], [2, 0, 0], [0, 0.1, 0]],
        [[1, 0, 0], [-1, 0, 0], [0, 2, 0]],
        [[2, 1, 0], [-2, 1, 0], [0, 0.9, 0]],
        [[0, 0, 2], [0, 0, 2], [0, 0, 2]],
        [[0, 0, 2], [0, 0, 3], [0, 0, 0.2]],
    ],
    np.float64,
)
"""Ends and side of paths past a geom of radius 1 at the origin: through its centre or axis, along its surface."""


@pytest.mark.parametrize(
    ("cylinder", "has_side"),
    [
        *((False, True), (True, False)),
        *(pytest.param(*both, marks=pytest.mark.slow) for both in ((False, False), (True, True))),
    ],
)
def test_derivatives_of_paths_past_a_geom_are_finite(cylinder: bool, has_side: bool) -> None:
    n = len(PATHS)
    mat, flags = jnp.tile(jnp.eye(3).ravel(), (n, 1)), (np.full(n, cylinder), np.full(n, has_side))

    def total(paths: jax.Array, centre: jax.Array) -> jax.Array:
        x0, x1, side = (paths[:, k] for k in range(3))
        found = wrap(flags[0], centre, mat, np.ones(n), x0, x1, flags[1], side)
        points = jnp.where(found.wraps[:, None], found.enter + found.leave, x0 + x1)
        return jnp.where(found.wraps, found.length, 0.0).sum() + points.sum()

    gradients = quick_jit(jax.grad(total, (0, 1)))(jnp.asarray(PATHS), jnp.zeros((n, 3)))
    assert all(bool(jnp.isfinite(g).all()) for g in gradients)


SLOW_TO_COMPILE = [pytest.param(name, marks=pytest.mark.slow) for name in ("ant", "pile")]


@pytest.mark.parametrize("name", [*SLOW_TO_COMPILE, pytest.param("parallel_capsules", marks=pytest.mark.slow)])
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


@pytest.mark.slow
def test_gradient_through_a_rollout_in_contact() -> None:
    """A ball dropped on the floor: d(final height)/d(initial height) against a central difference."""
    xml = """<mujoco><option timestep="0.004"/><worldbody><geom type="plane" size="1 1 1" condim="1"/>
      <body pos="0 0 0.1"><joint type="slide" axis="0 0 1"/><geom size="0.1" mass="1"/></body></worldbody></mujoco>"""
    model = load_table(mujoco.MjModel.from_xml_string(xml))
    step, base = make_step(model), initial_state(model, jnp.float64)

    def final(height: jax.Array) -> jax.Array:
        start = base._replace(qpos=height[None])
        advance = partial(jax.lax.scan, lambda s, _: (step(s, jnp.zeros(0)), None), length=12)
        return advance(start, None)[0].qpos[0]

    both = quick_jit(jax.value_and_grad(final))  # one program for all, as above
    h, eps = jnp.asarray(-0.002), 1e-6
    numeric = (both(h + eps)[0] - both(h - eps)[0]) / (2 * eps)
    np.testing.assert_allclose(both(h)[1], numeric, rtol=1e-5)
