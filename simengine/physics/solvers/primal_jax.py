"""Functions shared by the primal solvers in JAX: start, exact line search, derivatives of the optimum, for one world.

The solvers minimise 1/2 (a - a_s)' M (a - a_s) + s(J a - aref), where a_s = qacc_smooth and s is the cost of the rows
from `simengine.physics.constraints.row_law_jax` (MuJoCo documentation, chapter "Computation", section "Constraint
solver", "Primal problem").
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from simengine.physics.constraints.row_law_jax import RowLaw
from simengine.physics.math.tree_matrices_jax import Matrix, RowMatrix, TreeRows, pulled, times
from simengine.physics.math.vector_jax import const, dot, matmul, own
from simengine.physics.solvers.solve_by_families_jax import solve_by_families


class Problem(NamedTuple):
    """The problem: qM (nv, nv), qfrc_smooth (nv,), efc_J (n, nv), efc_D, efc_aref (n,); absent rows have D = 0."""

    M: Matrix
    smooth: jax.Array
    J: RowMatrix
    D: jax.Array
    aref: jax.Array


class Limits(NamedTuple):
    """When to stop: norm of the gradient, derivative along a line per unit of length, decrease of the cost in a step of
    conjugate gradients, and most iterations."""

    smallest: Any
    flat: Any
    decrease: Any
    iterations: int
    ls_iterations: int

    def times(self, inertia: jax.Array | None) -> Limits:
        """The limits multiplied by a per-world mean inertia (), or unchanged if `inertia` is None."""
        if inertia is None:
            return self
        scaled = (self.smallest * inertia, self.flat * inertia, self.decrease * inertia)
        return self._replace(smallest=scaled[0], flat=scaled[1], decrease=scaled[2])


def limits_of(m: Any, eps: float) -> Limits:
    """Limits from the options of a model; `eps` is the rounding unit of the numbers."""
    tolerance, scale = float(m.opt_tolerance), mean_inertia(m)[0] * max(1, m.nv)
    smallest = max(tolerance, eps) * scale
    flat, decrease = smallest * float(m.opt_ls_tolerance), tolerance * scale
    return Limits(smallest, flat, decrease, int(m.opt_iterations), int(m.opt_ls_iterations))


def mean_inertia(m: Any) -> tuple[float, jax.Array | None]:
    """The model's mean inertia and None, or 1 and a per-world mean inertia () without derivative."""
    if own(m.stat_meaninertia):
        return 1.0, jax.lax.stop_gradient(m.stat_meaninertia)
    return float(m.stat_meaninertia), None


Minimize = Callable[[RowLaw, Limits, Problem, Matrix, jax.Array], jax.Array]
"""(law, limits, problem, qLD, start) -> minimiser (nv,)."""


def solved_by(
    minimize: Minimize, m: Any, problem: Problem, qLD: Matrix, qacc_smooth: jax.Array, qacc_warmstart: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Acceleration, row forces and constraint forces by a primal method.

    Differentiable in all arguments except the warm start and qLD, through the optimality condition.
    """
    if problem.D.shape[0] == 0:
        return qacc_smooth, problem.D, jnp.zeros_like(qacc_smooth)
    law = RowLaw(m)
    start = qacc_smooth
    if m.opt_warmstart:
        cold, warm = (_cost(law, problem, qacc_smooth, a) for a in (qacc_smooth, qacc_warmstart))
        start = jnp.where(warm < cold, qacc_warmstart, qacc_smooth)
    limits = limits_of(m, float(jnp.finfo(start.dtype).eps))
    inertia = mean_inertia(m)[1]
    fixed = (
        jax.lax.stop_gradient(qLD),
        jax.lax.stop_gradient(start),
        None if inertia is None else const(inertia, start),
    )
    qacc = _optimum(minimize, limits, law, problem, *fixed)
    force = law.force(problem.D, times(problem.J, qacc) - problem.aref)
    return qacc, force, pulled(force, problem.J)


@partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def _optimum(
    minimize: Minimize,
    limits: Limits,
    law: RowLaw,
    problem: Problem,
    qLD: Matrix,
    start: jax.Array,
    inertia: jax.Array | None,
) -> jax.Array:
    return minimize(law, limits.times(inertia), problem, qLD, start)


@_optimum.defjvp
def _optimum_jvp(
    minimize: Minimize, limits: Limits, primals: tuple[Any, ...], tangents: tuple[Any, ...]
) -> tuple[jax.Array, jax.Array]:
    a = _optimum(minimize, limits, *primals)
    return a, implicit_tangent(a, primals[:2], tangents[:2])


def implicit_tangent(a: jax.Array, primals: tuple[RowLaw, Problem], tangents: tuple[RowLaw, Problem]) -> jax.Array:
    """Tangent (nv,) of the minimiser a: with g the gradient, g(a; p) = 0 gives H da = -dg at fixed a.

    Args: a (nv,); the laws and the problem, and their tangents.
    """
    _, rhs = jax.jvp(lambda law, problem: descent(law, problem, a), primals, tangents)
    return newton_step(*primals, a, rhs)


def _cost(law: RowLaw, problem: Problem, a_s: jax.Array, a: jax.Array) -> jax.Array:
    inertial = 0.5 * dot(a - a_s, times(problem.M, a) - problem.smooth)
    return inertial + law.cost(problem.D, times(problem.J, a) - problem.aref)


def descent(law: RowLaw, problem: Problem, a: jax.Array) -> jax.Array:
    """Minus the gradient (nv,)."""
    force = law.force(problem.D, times(problem.J, a) - problem.aref)
    return problem.smooth - times(problem.M, a) + pulled(force, problem.J)


def newton_step(law: RowLaw, problem: Problem, a: jax.Array, down: jax.Array) -> jax.Array:
    """The solution (nv,) of H x = down (nv,), with the Hessian H = M + J' W J at a (nv,)."""
    M: Any = problem.M
    J: Any = problem.J
    x = times(J, a) - problem.aref
    if isinstance(J, TreeRows):
        weighted = law.weighted(problem.D, x, J.values.reshape(len(J.families), -1))
        return solve_by_families(M, J, J.with_values(weighted), down)
    weighted = law.weighted(problem.D, x, J)
    L = jax.lax.linalg.cholesky(M + matmul(J.T, weighted), symmetrize_input=True)
    return jax.scipy.linalg.cho_solve((L, True), down)


def noise(problem: Problem, a: jax.Array, step: jax.Array) -> jax.Array:
    """A decrease of the cost along a step below this is rounding. Dofs that stand still have no part in either."""
    eps, moved = float(jnp.finfo(a.dtype).eps), jnp.where(step != 0, a, 0.0)
    return 100.0 * eps**2 * (jnp.abs(dot(moved, times(problem.M, a))) + jnp.abs(dot(moved, problem.smooth)))


class _Search(NamedTuple):
    alpha: jax.Array
    low: jax.Array
    high: jax.Array
    iteration: jax.Array
    done: jax.Array


def step_length(law: RowLaw, limits: Limits, problem: Problem, a: jax.Array, step: jax.Array) -> jax.Array:
    """Exact minimiser alpha () of the cost at a + alpha step: Newton on the derivative, safeguarded by a bracket."""
    eps = float(jnp.finfo(a.dtype).eps)
    slope = dot(step, times(problem.M, a) - problem.smooth)
    curvature = dot(step, times(problem.M, step))
    rows = law.along(problem.D, times(problem.J, a) - problem.aref, times(problem.J, step))
    tolerance = jnp.maximum(limits.flat * jnp.sqrt(dot(step, step)), 4.0 * eps * jnp.abs(slope))

    def refine(s: _Search) -> _Search:
        first, second = rows(s.alpha)
        first, second = first + slope + s.alpha * curvature, second + curvature
        low = jnp.where(first < 0, s.alpha, s.low)
        high = jnp.where(first < 0, s.high, s.alpha)
        newton = s.alpha - first / second
        outside = ~((newton > low) & (newton < high))
        middle = jnp.where(jnp.isfinite(high), 0.5 * (low + high), 2.0 * s.alpha)
        alpha = jnp.where(outside, middle, newton)
        done = (jnp.abs(first) <= tolerance) | (alpha == s.alpha)
        return _Search(jnp.where(done, s.alpha, alpha), low, high, s.iteration + 1, done)

    one = jnp.ones((), a.dtype)
    first = _Search(one, 0.0 * one, jnp.inf * one, jnp.zeros((), jnp.int32), jnp.zeros((), bool))
    return jax.lax.while_loop(lambda s: ~s.done & (s.iteration < limits.ls_iterations), refine, first).alpha
