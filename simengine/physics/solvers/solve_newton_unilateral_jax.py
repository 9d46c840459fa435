"""Newton's method for the constrained acceleration in JAX, for one world.

qacc is the minimiser of the strictly convex, piecewise quadratic

    c(a) = 1/2 (a - a_s)' M (a - a_s) + 1/2 sum_i D_i min(0, J_i a - aref_i)^2        a_s = qacc_smooth

(MuJoCo documentation, chapter "Computation", section "Constraint solver", "Primal problem", with pyramidal cones and
limits only). Its derivatives are

    g(a) = M a - qfrc_smooth - J' f      f = -D min(0, J a - aref)      H(a) = M + J_on' D_on J_on

where "on" are the active rows, those with J a < aref. A step that does not change the set of active rows is exact, so
the iteration ends at the optimum, up to rounding, once that set repeats.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from simengine.physics.math.vector_jax import const, dot, matmul
from simengine.physics.solvers.primal_jax import mean_inertia


class Limits(NamedTuple):
    """When to stop: MuJoCo's opt.tolerance and scale 1 / (meaninertia nv), and the most iterations of both loops.

    The scale does not contain the mean inertia if that is a per-world parameter.
    """

    tolerance: float
    scale: float
    iterations: int
    ls_iterations: int


def solve_newton_unilateral(
    m: Any,
    qM: jax.Array,
    qfrc_smooth: jax.Array,
    qacc_smooth: jax.Array,
    qacc_warmstart: jax.Array,
    efc_active: jax.Array,
    efc_J: jax.Array,
    efc_D: jax.Array,
    efc_aref: jax.Array,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Constrained acceleration and constraint forces.

    Differentiable in all arguments except the warm start, through the optimality condition.

    Args: qM (nv, nv), qfrc_smooth, qacc_smooth, qacc_warmstart (nv,), efc_active (nefc_max,) bool, efc_J
        (nefc_max, nv), efc_D, efc_aref (nefc_max,).
    Returns: qacc (nv,) [m/s^2, rad/s^2], efc_force (nefc_max,) [N, N m], qfrc_constraint (nv,) [N, N m].
    """
    if efc_D.shape[0] == 0:
        return qacc_smooth, efc_D, jnp.zeros_like(qfrc_smooth)
    efc_D = jnp.where(efc_active, efc_D, 0.0)

    # (1) start from qacc_warmstart or qacc_smooth, whichever costs less
    start = qacc_smooth
    if m.opt_warmstart:
        cost = partial(_cost, qM, qfrc_smooth, qacc_smooth, efc_J, efc_D, efc_aref)
        start = jnp.where(cost(qacc_warmstart) < cost(qacc_smooth), qacc_warmstart, qacc_smooth)

    # (2) to (6) Newton iterations
    inertia, of_world = mean_inertia(m)
    scale = 1.0 / (inertia * max(1, m.nv))
    limits = Limits(float(m.opt_tolerance), scale, int(m.opt_iterations), int(m.opt_ls_iterations))
    fixed = (jax.lax.stop_gradient(start), None if of_world is None else const(of_world, start))
    qacc = _minimize(limits, qM, qfrc_smooth, efc_J, efc_D, efc_aref, *fixed)

    # (7) forces at the optimum
    efc_force = row_force(efc_D, matmul(efc_J, qacc) - efc_aref)
    return qacc, efc_force, matmul(efc_force, efc_J)


def row_force(D: jax.Array, jar: jax.Array) -> jax.Array:
    """Forces (nefc_max,) of the rows at residuals jar = J qacc - aref (nefc_max,)."""
    return D * jnp.maximum(-jar, 0.0)


def _cost(
    qM: jax.Array, qfrc_smooth: jax.Array, smooth: jax.Array, J: jax.Array, D: jax.Array, aref: jax.Array, a: jax.Array
) -> jax.Array:
    violated = jnp.minimum(matmul(J, a) - aref, 0.0)
    return 0.5 * dot(a - smooth, matmul(qM, a) - qfrc_smooth) + 0.5 * dot(D, violated * violated)


class _State(NamedTuple):
    qacc: jax.Array
    repeats: jax.Array
    iteration: jax.Array
    done: jax.Array


def _factor(qM: jax.Array, J: jax.Array, weight: jax.Array) -> jax.Array:
    """Lower Cholesky factor of H = M + J' diag(weight) J."""
    return jax.lax.linalg.cholesky(qM + matmul(J.T * weight[None, :], J), symmetrize_input=False)


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _minimize(
    limits: Limits,
    qM: jax.Array,
    qfrc_smooth: jax.Array,
    J: jax.Array,
    D: jax.Array,
    aref: jax.Array,
    start: jax.Array,
    inertia: jax.Array | None,
) -> jax.Array:
    """Minimiser (nv,) of the cost, from `start` (nv,); `inertia` () is the mean inertia if that is per-world."""
    eps = float(jnp.finfo(qM.dtype).eps)
    scale = limits.scale if inertia is None else limits.scale / inertia

    def iterate(state: _State) -> _State:
        a = state.qacc
        # (2) active rows, their forces, and the gradient
        jar = matmul(J, a) - aref
        on = jar < 0
        weight = jnp.where(on, D, 0.0)
        inertial = matmul(qM, a)
        residual = inertial - qfrc_smooth
        grad = residual + matmul(weight * jar, J)

        # (3) Newton direction
        step = -jax.scipy.linalg.cho_solve((_factor(qM, J, weight), True), grad)

        # (4) exact line search
        jstep = matmul(J, step)
        alpha, repeats = _line_search(limits, dot(step, residual), dot(step, matmul(qM, step)), D, jar, jstep)

        # (5) done when the set of active rows repeats, or when the step or the gradient is within tolerance; a
        # decrement below the rounding of the gradient counts as zero. In double precision, a second full step removes
        # what the first one leaves if rows are far harder than inertia.
        decrement = -dot(grad, step)
        noise = (10.0 * eps) ** 2 * (jnp.abs(dot(a, inertial)) + jnp.abs(dot(a, qfrc_smooth)))
        small = 0.5 * scale * decrement < limits.tolerance
        flat = scale**2 * dot(grad, grad) < limits.tolerance**2
        ends = repeats & state.repeats if qM.dtype == jnp.float64 else repeats
        return _State(a + alpha * step, repeats, state.iteration + 1, ends | small | flat | (decrement < noise))

    # (6) stop at the optimum, or after the most iterations
    never = jnp.zeros((), bool)
    first = _State(start, never, jnp.zeros((), jnp.int32), never)
    return jax.lax.while_loop(lambda s: ~s.done & (s.iteration < limits.iterations), iterate, first).qacc


class _Search(NamedTuple):
    alpha: jax.Array
    low: jax.Array
    high: jax.Array
    on: jax.Array
    iteration: jax.Array
    done: jax.Array


def _line_search(
    limits: Limits, slope: jax.Array, curvature: jax.Array, D: jax.Array, jar: jax.Array, jstep: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Exact minimiser alpha of the cost along the step, and whether the full step leaves the active rows unchanged.

    The derivative with respect to alpha is increasing and piecewise linear. Newton's method on it ends when two
    iterates lie on one piece, and a bracket safeguards it. The full step is the first iterate.

    Args: slope, curvature: of the inertial cost at alpha = 0; jar, jstep (nefc_max,): J a - aref, and J times the step.
    """
    eps = float(jnp.finfo(jar.dtype).eps)

    def side(alpha: jax.Array) -> jax.Array:
        return (jar + alpha * jstep < 0) & (D > 0)

    def refine(s: _Search) -> _Search:
        weight = jnp.where(s.on, D, 0.0) * jstep
        second = curvature + dot(weight, jstep)
        first = slope + s.alpha * curvature + dot(weight, jar + s.alpha * jstep)
        low = jnp.where(first < 0, s.alpha, s.low)
        high = jnp.where(first < 0, s.high, s.alpha)
        newton = s.alpha - first / second
        outside = (newton < low) | (newton > high)
        alpha = jnp.where(outside, 0.5 * (low + high), newton)
        on = side(alpha)
        settled = (on == s.on).all() & ~outside
        still = jnp.abs(alpha - s.alpha) <= 4.0 * eps * s.alpha
        return _Search(alpha, low, high, on, s.iteration + 1, settled | still)

    one = jnp.ones((), jar.dtype)
    on = side(one)
    repeats = (on == side(0.0 * one)).all()
    first = _Search(one, 0.0 * one, jnp.inf * one, on, jnp.zeros((), jnp.int32), repeats)
    last = jax.lax.while_loop(lambda s: ~s.done & (s.iteration < limits.ls_iterations), refine, first)
    return last.alpha, repeats


@_minimize.defjvp
def _minimize_jvp(limits: Limits, primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[jax.Array, jax.Array]:
    """Tangent of the minimiser."""
    a = _minimize(limits, *primals)
    return a, implicit_tangent(a, primals[:5], tangents[:5])


def implicit_tangent(a: jax.Array, primals: tuple[jax.Array, ...], tangents: tuple[jax.Array, ...]) -> jax.Array:
    """Implicit differentiation: g(a; p) = 0 gives H da = -dg at fixed a.

    Args: a (nv,) the minimiser; primals, tangents: qM, qfrc_smooth, efc_J, efc_D, efc_aref and their tangents.
    """
    qM, _, J, D, aref = primals

    def force(qM: jax.Array, smooth: jax.Array, J: jax.Array, D: jax.Array, aref: jax.Array) -> jax.Array:
        return smooth - matmul(qM, a) + matmul(row_force(D, matmul(J, a) - aref), J)

    _, rhs = jax.jvp(force, primals, tangents)
    weight = jnp.where(matmul(J, a) < aref, D, 0.0)
    return jax.scipy.linalg.cho_solve((_factor(qM, J, weight), True), rhs)
