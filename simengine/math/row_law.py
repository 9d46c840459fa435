"""The cost of constraint rows as a function of their residuals x = J a - aref, for all row slots of a model.

Source: MuJoCo, chapter "Computation", sections "Constraint solver" and "Friction cones". With D = 1 / R of a row:

    equality               1/2 D x^2
    friction of loss f     1/2 D x^2 while D |x| < f, beyond that f |x| - f^2 / 2 D
    limit, contact, edge   1/2 D x^2 where x < 0
    elliptic cone          1/2 D_i x_i^2 over its rows where mu N + T <= 0, nothing where N >= mu T, in between
                           1/2 Dm (N - mu T)^2, Dm = D_0 / mu^2 (1 + mu^2)

with N = mu x_0, U_i = friction_i x_i, T = |U|, mu = friction_1 / sqrt(impratio).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from simengine.math.row_layout import ELLIPTIC, EQUALITY, FRICTION_DOF, FRICTION_TENDON, row_layout
from simengine.math.vector import const, dot, safe_sqrt


class Cones(NamedTuple):
    """The elliptic cones of one dimension: rows (k, dim), mu (k,), friction (k, dim - 1)."""

    rows: np.ndarray
    mu: np.ndarray
    friction: np.ndarray


class RowLaw:
    """The laws of a model's n row slots. Compares by identity, to be a static argument.

    Args:
        m: the model.

    Attributes:
        bounds: least and largest force (n,) of each row outside cones.
        first (n,): the row that opens the row's cone; outside cones the row itself.
        dim (n,): rows of the cone that the row opens, 1 outside cones, 0 for the other rows of a cone.
        most: the largest of them.
        cone_friction (n, most - 1): friction of the cone that the row opens, 1 in place of none.
    """

    def __init__(self, m: Any):
        layout = row_layout(m)
        kind = layout.type
        self.loss = layout.frictionloss
        self.equality = kind == EQUALITY
        self.friction = np.isin(kind, (FRICTION_DOF, FRICTION_TENDON))
        self.bounds = _bounds(self.equality, self.friction, self.loss)
        self.scalar = np.flatnonzero(kind != ELLIPTIC)
        condim = np.asarray(m.cand_condim)[np.asarray(m.slot_cand)]
        friction = np.asarray(m.cand_friction, np.float64).reshape(-1, 5)[np.asarray(m.slot_cand)]
        first, opens = layout.first_of_slot(m.nslot), np.zeros(m.nslot, bool)
        if m.nslot:
            opens = kind[first] == ELLIPTIC
        self.cones: list[Cones] = []
        for dim in sorted(set(condim[opens].tolist())):
            slots = np.flatnonzero(opens & (condim == dim))
            mu = friction[slots, 0] / np.sqrt(float(m.opt_impratio))
            self.cones.append(Cones(first[slots][:, None] + np.arange(dim), mu, friction[slots, : dim - 1]))
        self.first, self.dim = np.arange(kind.size), np.ones(kind.size, int)
        self.most = max([1, *(cones.rows.shape[1] for cones in self.cones)])
        self.cone_friction = np.ones((kind.size, self.most - 1))
        for cones in self.cones:
            dim = cones.rows.shape[1]
            self.first[cones.rows] = cones.rows[:, :1]
            self.dim[cones.rows] = np.where(np.arange(dim) == 0, dim, 0)
            self.cone_friction[cones.rows[:, 0], : dim - 1] = cones.friction
        order = np.concatenate([self.scalar, *(cones.rows.ravel() for cones in self.cones)])
        self._place = np.argsort(order)

    def cost(self, D: jax.Array, x: jax.Array) -> jax.Array:
        """Cost () of all rows at residuals x (n,); D (n,) is zero for rows that do not exist."""
        total = self._scalar_cost(D, x).sum()
        for cones in self.cones:
            total = total + jax.vmap(_cone_cost)(D[cones.rows], x[cones.rows], *_constants(cones, x)).sum()
        return total

    def force(self, D: jax.Array, x: jax.Array) -> jax.Array:
        """Forces (n,): minus the derivative of the cost."""
        parts = [self._scalar_force(D, x)]
        for cones in self.cones:
            parts.append(jax.vmap(_cone_force)(D[cones.rows], x[cones.rows], *_constants(cones, x)).ravel())
        return self._gathered(parts)

    def weighted(self, D: jax.Array, x: jax.Array, J: jax.Array) -> jax.Array:
        """Second derivatives of the cost times J (n, nv)."""
        on = self._slope_mask(D, x)
        parts = [jnp.where(on, D[self.scalar], 0.0)[:, None] * J[self.scalar]]
        for cones in self.cones:
            constants = _constants(cones, x)
            blocks = jax.vmap(jax.jacfwd(_cone_force, argnums=1))(D[cones.rows], x[cones.rows], *constants)
            product = jnp.matmul(-blocks, J[cones.rows], precision=jax.lax.Precision.HIGHEST)
            parts.append(product.reshape(-1, J.shape[1]))
        return self._gathered(parts)

    def along(self, D: jax.Array, x: jax.Array, v: jax.Array) -> Callable[[jax.Array], tuple[jax.Array, jax.Array]]:
        """First and second derivative () of the cost at x + alpha v by alpha, as a function of alpha ()."""

        def derivatives(alpha: jax.Array) -> tuple[jax.Array, jax.Array]:
            force, change = jax.jvp(lambda y: self.force(D, y), (x + alpha * v,), (v,))
            return -dot(force, v), -dot(change, v)

        return derivatives

    def confined(self, force: jax.Array) -> jax.Array:
        """Forces (n,) moved within their bounds, or into their cones along the slice at their normal force."""
        low, high = (const(bound[self.scalar], force) for bound in self.bounds)
        parts = [jnp.clip(force[self.scalar], low, high)]
        for cones in self.cones:
            f = force[cones.rows]
            normal, slid = jnp.maximum(f[:, :1], 0.0), f[:, 1:] / const(cones.friction, force)
            length = jnp.sqrt(dot(slid, slid))[:, None]
            shrink = jnp.where(length > normal, normal / jnp.where(length > 0, length, 1.0), 1.0)
            parts.append(jnp.concatenate([normal, f[:, 1:] * shrink], axis=1).ravel())
        return self._gathered(parts)

    def _gathered(self, parts: list[jax.Array]) -> jax.Array:
        return jnp.concatenate(parts)[self._place] if self.cones else parts[0]

    def _slope_mask(self, D: jax.Array, x: jax.Array) -> jax.Array:
        """Scalar rows whose cost is quadratic at x."""
        rows = self.scalar
        x, D = x[rows], D[rows]
        within = jnp.abs(D * x) < const(self.loss[rows], x)
        return jnp.where(self.equality[rows], True, jnp.where(self.friction[rows], within, x < 0))

    def _scalar_force(self, D: jax.Array, x: jax.Array) -> jax.Array:
        rows = self.scalar
        on = self._slope_mask(D, x)
        slip = const(np.where(self.friction, self.loss, 0.0)[rows], x) * -jnp.sign(x[rows])
        exists = D[rows] > 0
        return jnp.where(exists, jnp.where(on, -D[rows] * x[rows], slip), 0.0)

    def _scalar_cost(self, D: jax.Array, x: jax.Array) -> jax.Array:
        rows = self.scalar
        on, loss = self._slope_mask(D, x), const(np.where(self.friction, self.loss, 0.0)[rows], x)
        x, D = x[rows], D[rows]
        slip = loss * (jnp.abs(x) - 0.5 * loss / jnp.where(D > 0, D, 1.0))
        return jnp.where(D > 0, jnp.where(on, 0.5 * D * x * x, slip), 0.0)


def _bounds(equality: np.ndarray, friction: np.ndarray, loss: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Least and largest force of each row outside cones."""
    low = np.where(equality, -np.inf, np.where(friction, -loss, 0.0))
    return low, np.where(friction, loss, np.inf)


def _constants(cones: Cones, like: jax.Array) -> tuple[jax.Array, jax.Array]:
    return const(cones.mu, like), const(cones.friction, like)


def _cone(
    D: jax.Array, x: jax.Array, mu: jax.Array, friction: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array, jax.Array]:
    """Whether the cost is zero, whether quadratic; N - mu T, u = U / T (dim - 1,), and Dm of a cone at x (dim,)."""
    N, U = mu * x[0], friction * x[1:]
    T = safe_sqrt(dot(U, U))
    u = U / jnp.where(T > 0, T, 1.0)
    return mu * T <= N, mu * N + T <= 0, N - mu * T, u, D[0] / (mu * mu * (1.0 + mu * mu))


def _cone_force(D: jax.Array, x: jax.Array, mu: jax.Array, friction: jax.Array) -> jax.Array:
    free, quadratic, depth, u, Dm = _cone(D, x, mu, friction)
    between = -Dm * depth * mu * jnp.concatenate([jnp.ones_like(u[:1]), -friction * u])
    return jnp.where(free, 0.0, jnp.where(quadratic, -D * x, between))


def _cone_cost(D: jax.Array, x: jax.Array, mu: jax.Array, friction: jax.Array) -> jax.Array:
    free, quadratic, depth, _, Dm = _cone(D, x, mu, friction)
    return jnp.where(free, 0.0, jnp.where(quadratic, 0.5 * dot(D, x * x), 0.5 * Dm * depth * depth))
