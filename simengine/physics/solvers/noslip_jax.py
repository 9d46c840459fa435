"""Friction without slip in JAX, for one world.

Source: MuJoCo documentation, chapter "Computation", section "Constraint solver", "Algorithms", NoSlip. After the
solver, friction forces (friction loss, and friction at contacts) are updated one after another as if their rows had no
regularisation: with M = L L' and Y = J inv(L'), a change f of the forces costs 1/2 |Y' f|^2 + f' b, b = J qacc - aref.
Normal forces do not change, nor does the sum of two opposite edges of a pyramid. The sweeps work with changes of
forces: where large forces cancel, the solver's acceleration is more accurate than one computed from its forces.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from simengine.physics.constraints.row_law_jax import RowLaw
from simengine.physics.constraints.row_layout_jax import FRICTION_DOF, FRICTION_TENDON, PYRAMIDAL, row_layout
from simengine.physics.islands.row_islands_jax import row_islands
from simengine.physics.math.vector_jax import MINVAL, const, dot, matmul
from simengine.physics.solvers.tangents_jax import best_tangents, rounding_of_cost


class _Together(NamedTuple):
    """Rows (k, n) that are updated together, in order; their normal row (k,), and friction (k, n) of a cone.

    `loss` (k,) bounds friction loss. Cones of lower dimension are padded to n rows; `live` (k, n) marks the real ones.
    """

    kind: str
    rows: np.ndarray
    live: np.ndarray
    presses: np.ndarray
    friction: np.ndarray
    loss: np.ndarray


class _Dual(NamedTuple):
    """Y (n, nv), b (n,), island of each row (n,), and which rows exist (n,)."""

    Y: jax.Array
    b: jax.Array
    island: jax.Array
    active: jax.Array


def noslip(
    m: Any,
    qM: jax.Array,
    qLD: jax.Array,
    qacc_smooth: jax.Array,
    efc_active: jax.Array,
    efc_J: jax.Array,
    efc_D: jax.Array,
    efc_aref: jax.Array,
    qacc: jax.Array,
    efc_force: jax.Array,
    qfrc_constraint: jax.Array,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Constrained acceleration and constraint forces after the sweeps.

    Args: qM, qLD (nv, nv) the inertia matrix and its lower Cholesky factor, qacc_smooth (nv,), efc_active (nefc_max,)
        bool, efc_J (nefc_max, nv), efc_D, efc_aref (nefc_max,); the solver's results efc_force (nefc_max,), qacc,
        qfrc_constraint (nv,).
    Returns: qacc (nv,) [m/s^2, rad/s^2], efc_force (nefc_max,) [N, N m], qfrc_constraint (nv,) [N, N m].
    """
    law = RowLaw(m)
    groups = [group for group in _groups(m, law) if group.rows.size]
    if not m.opt_noslip_iterations or not groups:
        return qacc, efc_force, qfrc_constraint
    active = efc_active & (efc_D > 0)
    # (1) the solver's acceleration, corrected if it differs from that of the solver's forces by more than rounding
    qacc = qacc + _rest(qM, qLD, qacc - qacc_smooth, efc_J, jnp.where(active, efc_force, 0.0))
    # (2) rows sorted by island; diagonal blocks of A, without the regularisation, come from the whitened Jacobian
    island, trace = row_islands(law, tuple(m.dof_treeid.tolist()), qM, efc_J, active)
    Y = jax.lax.linalg.triangular_solve(qLD, efc_J.T, left_side=True, lower=True).T
    dual = _Dual(Y, matmul(efc_J, qacc) - efc_aref, island, active)
    # (3) the first sweep also counts the cost of the regularisation as improvement
    first = 0.5 * efc_force * efc_force * jnp.where(active, 1.0 / jnp.where(active, efc_D, 1.0), 0.0)
    size = int(np.max(m.dof_treeid, initial=0)) + 2
    least = jnp.zeros(size, qacc.dtype).at[island].max(jnp.where(active, float(m.opt_noslip_tolerance) * trace, 0.0))
    saved = jnp.zeros(size, qacc.dtype).at[island].add(jax.lax.stop_gradient(first))

    def sweep(_: jax.Array, carry: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        force, z, done, saved = carry
        for group in groups:
            force, z, saved = _improved(group, dual, done, force, z, saved)
        # (5) stop when the decrease of the cost is below the tolerance
        return force, z, done | (saved < least), jnp.zeros_like(saved)

    start = (jnp.where(active, efc_force, 0.0), jnp.zeros_like(qacc), jnp.zeros(size, bool), saved)
    force, z = jax.lax.fori_loop(0, int(m.opt_noslip_iterations), sweep, start)[:2]
    # (6) acceleration and generalised force of the changes of forces
    change = matmul(qLD, z)
    return qacc + jax.scipy.linalg.cho_solve((qLD, True), change), force, qfrc_constraint + change


def _rest(qM: jax.Array, qLD: jax.Array, due: jax.Array, J: jax.Array, force: jax.Array) -> jax.Array:
    """What an acceleration (nv,) lacks of that due to forces, or zero where the difference is rounding alone."""
    missing = matmul(force, J) - matmul(qM, due)
    size = matmul(jnp.abs(force), jnp.abs(J)) + matmul(jnp.abs(qM), jnp.abs(due))
    early = (jnp.abs(missing) > 64.0 * float(jnp.finfo(due.dtype).eps) * size).any()
    return jnp.where(early, jax.scipy.linalg.cho_solve((qLD, True), missing), 0.0)


def _groups(m: Any, law: RowLaw) -> list[_Together]:
    """Rows that are updated together: of friction loss, of pyramids, of elliptic cones."""
    kind = row_layout(m).type
    dry = np.flatnonzero(np.isin(kind, (FRICTION_DOF, FRICTION_TENDON)))
    edges = np.flatnonzero(kind == PYRAMIDAL).reshape(-1, 2)
    opens = np.flatnonzero(law.dim > 1)
    place = np.arange(1, law.most)
    tangents = np.minimum(opens[:, None] + place, kind.size - 1)

    def of(kind: str, rows: np.ndarray, live: np.ndarray, presses: np.ndarray, friction: np.ndarray) -> _Together:
        return _Together(kind, rows, live, presses, friction, law.loss[rows[:, 0]] if rows.size else np.zeros(0))

    one, two = np.ones((dry.size, 1), bool), np.ones(edges.shape, bool)
    return [
        of("dry", dry[:, None], one, dry, np.ones(one.shape)),
        of("edges", edges, two, edges[:, 0], np.ones(edges.shape)),
        of("cone", tangents, place < law.dim[opens][:, None], opens, law.cone_friction[opens]),
    ]


def _improved(
    group: _Together, dual: _Dual, done: jax.Array, force: jax.Array, z: jax.Array, saved: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Forces (n,), z = Y' f of their changes, and the decrease of each island's cost, after a sweep over a group."""
    rows, live, presses = (jnp.asarray(part) for part in (group.rows, group.live, group.presses))
    friction, loss = const(group.friction, force), const(group.loss, force)

    # (4) the optimal forces of rows that are updated together, while the others stay fixed
    def visit(k: jax.Array, carry: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        force, z, saved = carry
        at, on, island = rows[k], live[k].astype(force.dtype), dual.island[presses[k]]
        Y, old = dual.Y[at] * on[:, None], force[at] * on
        slip = (dual.b[at] + matmul(Y, z)) * on
        visited = dual.active[presses[k]] & ~done[island]
        if group.kind == "edges":
            slope = dual.b[at[0]] - dual.b[at[1]] + dot(Y[0] - Y[1], z)
            change, fallen = _edges_change(jnp.where(visited, Y, 0.0), old, slope)
        else:
            A = jnp.where(visited, matmul(Y, Y.T) + jnp.diag(1.0 - on), jnp.eye(on.size, dtype=Y.dtype))
            if group.kind == "dry":
                best = jnp.clip(old - slip / A[0, 0], -loss[k], loss[k])
            else:
                pressed = force[presses[k]] >= MINVAL
                normal = jnp.where(pressed, force[presses[k]], 1.0)
                tangent = best_tangents(A, slip, old, friction[k], normal, live[k].sum())
                best = jnp.where(pressed, tangent, 0.0)
            change = (best - old) * on
            fallen = -dot(change, slip + 0.5 * matmul(A, change))
        # the friction forces of a cone may not be optimal
        change = jnp.where(visited & (fallen >= -rounding_of_cost(slip, old, change)), change, 0.0)
        fallen = jax.lax.stop_gradient(jnp.where(visited, jnp.maximum(fallen, 0.0), 0.0))
        return force.at[at].add(change), z + matmul(change, Y), saved.at[island].add(fallen)

    return jax.lax.fori_loop(0, group.rows.shape[0], visit, (force, z, saved))


def _edges_change(Y: jax.Array, old: jax.Array, slope: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Optimal change (2,) of two opposite edges' forces at constant sum, and the decrease () of the cost.

    The code works with the difference of the two rows, in which their common part cancels; `slope` () is the derivative
    of the cost along it.
    """
    across, middle, half = Y[0] - Y[1], 0.5 * (old[0] + old[1]), 0.5 * (old[0] - old[1])
    curve, noise = dot(across, across), 16.0 * float(jnp.finfo(Y.dtype).eps)
    flat = curve < jnp.maximum(MINVAL, noise**2 * (dot(Y[0], Y[0]) + dot(Y[1], Y[1])))
    best = jnp.where(flat, 0.0, jnp.clip(half - slope / jnp.where(flat, 1.0, curve), -middle, middle))
    change = best - half
    return jnp.stack([change, -change]), -change * (slope + 0.5 * curve * change)
