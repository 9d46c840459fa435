"""Non-linear conjugate gradients for the constrained acceleration in JAX, for one world and rows of every type.

The problem is that of `primal_jax.py`, preconditioned by P = inv(M). The direction is that of W. Hager and H. Zhang,
SIAM J. Optim. 16 (2005), (1.6), with the gradient g, its change y and the previous direction d:
beta = (y' P g - 2 (y' P y) (d' g) / (d' y)) / (d' y).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from simengine.physics.constraints.row_law_jax import RowLaw
from simengine.physics.math.tree_matrices_jax import Matrix, RowMatrix, solve_factored
from simengine.physics.math.vector_jax import dot
from simengine.physics.solvers.primal_jax import Limits, Problem, descent, noise, solved_by, step_length


def solve_cg(
    m: Any,
    qM: Matrix,
    qLD: Matrix,
    qfrc_smooth: jax.Array,
    qacc_smooth: jax.Array,
    qacc_warmstart: jax.Array,
    efc_active: jax.Array,
    efc_J: RowMatrix,
    efc_D: jax.Array,
    efc_aref: jax.Array,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Constrained acceleration and constraint forces; arguments and results are those of `solve_newton_general`."""
    problem = Problem(qM, qfrc_smooth, efc_J, jnp.where(efc_active, efc_D, 0.0), efc_aref)
    # (1) start from qacc_warmstart or qacc_smooth, whichever costs less; (7) forces
    return solved_by(_minimize, m, problem, qLD, qacc_smooth, qacc_warmstart)


class _State(NamedTuple):
    qacc: jax.Array
    gradient: jax.Array
    scaled: jax.Array
    search: jax.Array
    iteration: jax.Array
    done: jax.Array


def _minimize(law: RowLaw, limits: Limits, problem: Problem, qLD: Matrix, start: jax.Array) -> jax.Array:
    eps = float(jnp.finfo(start.dtype).eps)

    def iterate(state: _State) -> _State:
        # (2) gradient and its change
        a, d = state.qacc, state.search
        gradient = -descent(law, problem, a)
        scaled = solve_factored(qLD, gradient)
        y, Py = gradient - state.gradient, scaled - state.scaled
        # (3) direction: steepest descent at first, and wherever the conjugate direction is not one of descent
        dy, dg, gPg = dot(d, y), dot(d, gradient), dot(gradient, scaled)
        usable = (state.iteration > 0) & (dy > 0)
        safe = jnp.where(usable, dy, 1.0)
        beta = jnp.maximum(0.0, (dot(y, scaled) - 2.0 * dot(y, Py) * dg / safe) / safe)
        beta = jnp.where(usable & (beta * dg < gPg), beta, 0.0)
        search = beta * d - scaled
        # (4) exact line search
        alpha = step_length(law, limits, problem, a, search)
        moved = alpha * search
        # (5) is the point as near to the optimum as rounding allows, or has the cost decreased as little as MuJoCo's
        # solvers end at? Along a line it falls by half its slope times the step, as a parabola does.
        there = dot(gradient, gradient) < limits.smallest**2
        near = (gPg <= noise(problem, a, search)) | (dot(moved, moved) <= eps**2 * dot(a, a))
        near |= 0.5 * alpha * (gPg - beta * dg) < limits.decrease
        following = jnp.where(there, a, a + moved)
        return _State(following, gradient, scaled, search, state.iteration + 1, there | near)

    # (6) stop at the optimum, or after the most iterations
    zero = jnp.zeros_like(start)
    first = _State(start, zero, zero, zero, jnp.zeros((), jnp.int32), jnp.zeros((), bool))
    return jax.lax.while_loop(lambda s: ~s.done & (s.iteration < limits.iterations), iterate, first).qacc
