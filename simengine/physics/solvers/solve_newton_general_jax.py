"""Newton's method for the constrained acceleration in JAX, for one world and rows of every type.

The problem is that of `primal_jax.py`. Its Hessian is M + J' W J, where W are the second derivatives of the rows' cost.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from simengine.physics.constraints.row_law_jax import RowLaw
from simengine.physics.math.tree_matrices_jax import Matrix, RowMatrix, solve_factored
from simengine.physics.math.vector_jax import dot
from simengine.physics.solvers.primal_jax import Limits, Problem, descent, newton_step, noise, solved_by, step_length


def solve_newton_general(
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
    """Constrained acceleration and constraint forces.

    Differentiable in all arguments except qLD and the warm start, through the optimality condition.

    Args: qM, qLD (nv, nv) the inertia matrix and its lower Cholesky factor, qfrc_smooth, qacc_smooth, qacc_warmstart
        (nv,), efc_active (nefc_max,) bool, efc_J (nefc_max, nv), efc_D, efc_aref (nefc_max,).
    Returns: qacc (nv,) [m/s^2, rad/s^2], efc_force (nefc_max,) [N, N m], qfrc_constraint (nv,) [N, N m].
    """
    problem = Problem(qM, qfrc_smooth, efc_J, jnp.where(efc_active, efc_D, 0.0), efc_aref)
    # (1) start from qacc_warmstart or qacc_smooth, whichever costs less; (7) forces
    return solved_by(_minimize, m, problem, qLD, qacc_smooth, qacc_warmstart)


_FAINT = 1e4  # decrements below so many times the noise may be rounding


class _State(NamedTuple):
    qacc: jax.Array
    decrement: jax.Array
    iteration: jax.Array
    done: jax.Array


def _minimize(law: RowLaw, limits: Limits, problem: Problem, qLD: Matrix, start: jax.Array) -> jax.Array:
    eps = float(jnp.finfo(start.dtype).eps)

    def iterate(state: _State) -> _State:
        a = state.qacc
        # (2) minus the gradient
        down = descent(law, problem, a)
        # (3) Newton direction; with stiff rows, rounding may make the Hessian impossible to factor
        step = newton_step(law, problem, a, down)
        step = jnp.where(jnp.isfinite(step).all(), step, solve_factored(qLD, down))
        # (4) exact line search
        moved = step_length(law, limits, problem, a, step) * step
        # (5) is the point as near to the optimum as rounding allows?
        there = dot(down, down) < limits.smallest**2
        decrement, least = dot(down, step), noise(problem, a, step)
        near = (decrement <= least) | (dot(moved, moved) <= eps**2 * dot(a, a))
        near |= (decrement <= _FAINT * least) & (decrement > 0.9 * state.decrement)
        return _State(jnp.where(there, a, a + moved), decrement, state.iteration + 1, there | near)

    # (6) stop at the optimum, or after the most iterations
    first = _State(start, jnp.full((), jnp.inf, start.dtype), jnp.zeros((), jnp.int32), jnp.zeros((), bool))
    return jax.lax.while_loop(lambda s: ~s.done & (s.iteration < limits.iterations), iterate, first).qacc
