"""Projected Gauss-Seidel for the constraint forces in JAX, for one world.

The forces minimise 1/2 f' (A + R) f + f' b, with A = J inv(M) J', R = 1 / D and b = J qacc_smooth - aref (MuJoCo
documentation, chapter "Computation", section "Constraint solver", "Dual problem"). f is free for equalities, bounded by
the loss for friction loss, in its cone for an elliptic contact, and not negative otherwise. Below, an elliptic contact
counts as one row: the first of its rows. With M = L L' and Y = J inv(L'), A is Y Y', and z = Y' f is updated with every
change of f. The iterations seldom converge, so their result depends on the row order, the momentum and the termination,
all of which are MuJoCo's. Every sweep visits the rows in another random order, from a point extrapolated along the
latest change; the momentum restarts when the extrapolation has gone against the descent (B. O'Donoghue and E. Candes,
Found. Comput. Math. 15 (2015), gradient restart).
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from simengine.physics.constraints.row_law_jax import RowLaw
from simengine.physics.islands.row_islands_jax import row_islands
from simengine.physics.math import random_jax as pcg
from simengine.physics.math.vector_jax import const, dot, matmul
from simengine.physics.solvers.cone_update_jax import best_in_cone
from simengine.physics.solvers.primal_jax import Problem, implicit_tangent


class _Limits(NamedTuple):
    """When to stop, and the kinematic tree of every dof."""

    tolerance: float
    iterations: int
    tree: tuple[int, ...]


class _Rows(NamedTuple):
    """The dual problem: rows (n, ...), and for each row the trace (n,) of its island's inertia matrix."""

    Y: jax.Array
    b: jax.Array
    R: jax.Array
    trace: jax.Array


def solve_pgs(
    m: Any,
    qM: jax.Array,
    qLD: jax.Array,
    qfrc_smooth: jax.Array,
    qacc_smooth: jax.Array,
    qacc_warmstart: jax.Array,
    efc_active: jax.Array,
    efc_J: jax.Array,
    efc_D: jax.Array,
    efc_aref: jax.Array,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Constrained acceleration and constraint forces.

    Differentiable in all arguments except the warm start. The derivatives are those of the problem's optimum, which the
    iterations approach.

    Args: qM, qLD (nv, nv) the inertia matrix and its lower Cholesky factor, qfrc_smooth, qacc_smooth, qacc_warmstart
        (nv,), efc_active (nefc_max,) bool, efc_J (nefc_max, nv), efc_D, efc_aref (nefc_max,).
    Returns: qacc (nv,) [m/s^2, rad/s^2], efc_force (nefc_max,) [N, N m], qfrc_constraint (nv,) [N, N m].
    """
    if efc_D.shape[0] == 0:
        return qacc_smooth, efc_D, jnp.zeros_like(qfrc_smooth)
    efc_D = jnp.where(efc_active, efc_D, 0.0)
    limits = _Limits(float(m.opt_tolerance), int(m.opt_iterations), tuple(m.dof_treeid.tolist()))
    law = RowLaw(m)
    warm = law.force(efc_D, matmul(efc_J, qacc_warmstart) - efc_aref) * m.opt_warmstart
    warm = jax.lax.stop_gradient(warm)
    efc_force = _solution(limits, law, qM, qfrc_smooth, efc_J, efc_D, efc_aref, qLD, qacc_smooth, warm)

    # (8) acceleration due to the forces
    qfrc_constraint = matmul(efc_force, efc_J)
    return qacc_smooth + jax.scipy.linalg.cho_solve((qLD, True), qfrc_constraint), efc_force, qfrc_constraint


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _solution(
    limits: _Limits,
    law: RowLaw,
    qM: jax.Array,
    qfrc_smooth: jax.Array,
    J: jax.Array,
    D: jax.Array,
    aref: jax.Array,
    qLD: jax.Array,
    qacc_smooth: jax.Array,
    warm: jax.Array,
) -> jax.Array:
    """Forces (nefc_max,) after the iterations from `warm` (nefc_max,)."""
    active = D > 0
    # (1) rows that share a kinematic tree, directly or through other rows, form an island
    island, trace = row_islands(law, limits.tree, qM, J, active)

    # (2) whitened Jacobian, and residual without forces
    R = jnp.where(active, 1.0 / jnp.where(active, D, 1.0), 0.0)
    Y = jax.lax.linalg.triangular_solve(qLD, J.T, left_side=True, lower=True).T
    rows = _Rows(Y, matmul(J, qacc_smooth) - aref, R, trace)

    # (3) warm start: the forces at the last acceleration, or zero if that costs less
    z = matmul(warm, Y)
    cost = dot(warm, rows.b + 0.5 * R * warm) + 0.5 * dot(z, z)
    force = jnp.where(cost > 0, 0.0, warm)

    # one island after another; rows that do not exist come last
    taken = active & (law.dim > 0)
    order = jnp.lexsort([island, ~taken]).astype(jnp.int32)
    number = taken.sum(dtype=jnp.int32)

    def next_island(carry: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array, jax.Array]:
        begin, order, force = carry
        count = ((island == island[order[begin]]) & taken).sum(dtype=jnp.int32)
        order, force = _descend(limits, law, rows, order, begin, count, force)
        return begin + count, order, force

    first = (jnp.zeros((), jnp.int32), order, force)
    return jax.lax.while_loop(lambda carry: carry[0] < number, next_island, first)[2]


class _Descent(NamedTuple):
    force: jax.Array
    before: jax.Array
    order: jax.Array
    random: pcg.State
    since_restart: jax.Array
    iteration: jax.Array
    total: jax.Array
    done: jax.Array


def _descend(
    limits: _Limits, law: RowLaw, rows: _Rows, order: jax.Array, begin: jax.Array, count: jax.Array, force: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Iterate over the `count` () rows of `order` (n,) from `begin` () on; returns the order and the forces (n,)."""
    noise = 16.0 * float(jnp.finfo(force.dtype).eps) ** 2
    tolerance = limits.tolerance * rows.trace[order[begin]]

    def iterate(state: _Descent) -> _Descent:
        order, random = pcg.shuffle(state.order, begin, count, state.random)
        # (4) extrapolate, and clamp to the bounds; only rows of this island have changed since the last sweep
        k = jnp.maximum(state.since_restart - 1, 0).astype(force.dtype)
        ahead = law.confined(state.force + k / (k + 3.0) * (state.force - state.before))
        ahead = jnp.where(k > 0, ahead, state.force)
        after, improvement, against = _sweep(law, rows, order, begin, count, ahead, state.force)
        # (6) the momentum grows until the extrapolation goes against the descent
        since_restart = jnp.where(against > 0, 0, state.since_restart + 1)
        # (7) stop when the decrease of the cost is below the tolerance, or is rounding alone
        total = state.total + jnp.abs(improvement)
        done = improvement < jnp.maximum(tolerance, noise * total)
        return _Descent(after, state.force, order, random, since_restart, state.iteration + 1, total, done)

    zero, nothing = jnp.zeros((), jnp.int32), jnp.zeros((), force.dtype)
    first = _Descent(force, force, order, pcg.first_state(), zero, zero, nothing, zero > 0)
    last = jax.lax.while_loop(lambda s: ~s.done & (s.iteration < limits.iterations), iterate, first)
    return last.order, last.force


def _sweep(
    law: RowLaw,
    rows: _Rows,
    order: jax.Array,
    begin: jax.Array,
    count: jax.Array,
    force: jax.Array,
    before: jax.Array,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """One sweep from `force` (n,), which was extrapolated from `before` (n,).

    Returns: forces (n,), the decrease of the cost, and a product that is positive if the extrapolation went against the
        descent.
    """
    low, high = (const(bound, force) for bound in law.bounds)
    friction, dim, place = (
        const(law.cone_friction, force),
        jnp.asarray(law.dim, jnp.int32),
        jnp.arange(law.most, dtype=jnp.int32),
    )

    # (5) each force becomes its optimum while the others stay fixed
    def visit(k: jax.Array, carry: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        force, z, improvement, against = carry
        r = order[k]
        at, live = jnp.minimum(r + place, force.size - 1), (place < dim[r]).astype(force.dtype)
        Y, old, R = rows.Y[at] * live[:, None], force[at] * live, rows.R[at]
        residual = (rows.b[at] + matmul(Y, z) + R * old) * live
        A = matmul(Y, Y.T) + jnp.diag(jnp.where(live > 0, R, 1.0))
        best = jnp.clip(old - residual / jnp.diagonal(A), low[r], high[r])
        if law.most > 1:
            best = jnp.where(dim[r] > 1, best_in_cone(A, residual, old, friction[r], dim[r] - 1), best)
        change = (best - old) * live
        improvement = improvement - dot(change, 0.5 * matmul(A, change) + residual)
        against = against - dot(change, old - before[at])
        return force.at[at].add(change), z + matmul(change, Y), improvement, against

    zero = jnp.zeros((), force.dtype)
    start = (force, matmul(force, rows.Y), zero, zero)
    force, _, improvement, against = jax.lax.fori_loop(begin, begin + count, visit, start)
    return force, improvement, against


@_solution.defjvp
def _solution_jvp(limits: _Limits, primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[jax.Array, jax.Array]:
    """Implicit differentiation at the acceleration due to the forces, as if it were the optimum."""
    force = _solution(limits, *primals)
    law, _, _, J, D, aref, qLD, qacc_smooth, _ = primals
    qacc = qacc_smooth + jax.scipy.linalg.cho_solve((qLD, True), matmul(force, J))
    dqacc = implicit_tangent(qacc, (law, Problem(*primals[1:6])), (tangents[0], Problem(*tangents[1:6])))

    def force_at(law: RowLaw, J: jax.Array, D: jax.Array, aref: jax.Array, qacc: jax.Array) -> jax.Array:
        return law.force(D, matmul(J, qacc) - aref)

    return force, jax.jvp(force_at, (law, J, D, aref, qacc), (tangents[0], *tangents[3:6], dqacc))[1]
