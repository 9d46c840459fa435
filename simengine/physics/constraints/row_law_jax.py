"""The cost of constraint rows as a function of their residuals x = J a - aref, for all row slots of a model.

Source: MuJoCo documentation, chapter "Computation", section "Constraint solver", "Friction cones". With D = 1 / R:

    equality               1/2 D x^2
    friction of loss f     1/2 D x^2 where D |x| < f, elsewhere f |x| - f^2 / (2 D)
    limit, contact, edge   1/2 D x^2 where x < 0
    elliptic cone          sum of 1/2 D_i x_i^2 over its rows where mu N + T <= 0; zero where N >= mu T; elsewhere
                           1/2 Dm (N - mu T)^2 with Dm = D_0 / (mu^2 (1 + mu^2))

with N = mu x_0, U_i = friction_i x_i, T = |U|, mu = friction_1 / sqrt(impratio).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from simengine.physics.constraints.row_layout_jax import ELLIPTIC, EQUALITY, FRICTION_DOF, FRICTION_TENDON, row_layout
from simengine.physics.math.vector_jax import const, dot, own, safe_sqrt, tables


class Cones(NamedTuple):
    """The elliptic cones of one dimension: rows (k, dim), mu (k,), friction (k, dim - 1)."""

    rows: np.ndarray
    mu: Any
    friction: Any


class _Fixed:
    """The part of the laws that per-world parameters do not change: the structure, and the model's numbers.

    It compares by identity, so that it can be a static argument of jitted functions.

    Attributes:
        equality, friction (n,): which rows are equalities, and which are friction losses.
        scalar: the rows outside cones.
        cones: contact slots (k,) and rows (k, dim) of the elliptic cones, one entry per dimension.
        slot (n,): contact slot of the row, 0 for rows without one.
        first, constraint, dim, most: as in `RowLaw`.
        place (n,): index of the row in the concatenation of the scalar rows and the rows of the cones.
        impratio: square root of the option.
        loss, slot_friction: as in `RowLaw`; None if they are per-world parameters.
    """

    def __init__(self, m: Any):
        layout = row_layout(m)
        kind = layout.type
        self.loss, self.slot_friction = layout.frictionloss, m.cand_friction.reshape(-1, 5)[np.asarray(m.slot_cand)]
        self.equality = kind == EQUALITY
        self.friction = np.isin(kind, (FRICTION_DOF, FRICTION_TENDON))
        self.scalar = np.flatnonzero(kind != ELLIPTIC)
        condim = np.asarray(m.cand_condim)[np.asarray(m.slot_cand)]
        first, opens = layout.first_of_slot(m.nslot), np.zeros(m.nslot, bool)
        if m.nslot:
            opens = kind[first] == ELLIPTIC
        self.cones: list[tuple[np.ndarray, np.ndarray]] = []
        for dim in sorted(set(condim[opens].tolist())):
            slots = np.flatnonzero(opens & (condim == dim))
            self.cones.append((slots, first[slots][:, None] + np.arange(dim)))
        self.slot = np.concatenate([np.zeros(layout.first_contact, int), layout.contact_slot])
        self.first, self.dim = np.arange(kind.size), np.ones(kind.size, int)
        self.most = max([1, *(rows.shape[1] for _, rows in self.cones)])
        for _, rows in self.cones:
            self.first[rows] = rows[:, :1]
            self.dim[rows] = np.where(np.arange(rows.shape[1]) == 0, rows.shape[1], 0)
        begins = np.ones(kind.size, bool)
        begins[1:] = (kind[1:] != kind[:-1]) | (layout.id[1:] != layout.id[:-1])
        self.constraint = np.flatnonzero(begins)[np.cumsum(begins) - 1]
        self.place = np.argsort(np.concatenate([self.scalar, *(rows.ravel() for _, rows in self.cones)]))
        self.impratio = float(np.sqrt(float(m.opt_impratio)))


@jax.tree_util.register_pytree_node_class
class RowLaw:
    """The cost of a model's n row slots. As a pytree, its leaves are the per-world parameters, if there are any.

    Args:
        m: the model.

    Attributes:
        loss (n,): the friction loss of each row, zero of others.
        slot_friction (nslot, 5): the friction of each contact slot.
        first (n,): the first row of the row's cone; outside cones the row itself.
        constraint (n,): the first row of the row's equality, limit or contact.
        dim (n,): for the first row of a cone the dimension of the cone, for its other rows 0, outside cones 1.
        most: the largest entry of `dim`.
    """

    def __init__(self, m: Any):
        fixed = _Fixed(m)
        self.loss, self.slot_friction = fixed.loss, fixed.slot_friction
        # per-world parameters have derivatives and so must be leaves, not part of the static argument
        fixed.loss, fixed.slot_friction = (None if own(x) else x for x in (fixed.loss, fixed.slot_friction))
        self._note(fixed)

    def _note(self, fixed: _Fixed) -> None:
        self._fixed = fixed
        self.equality, self.friction, self.scalar = fixed.equality, fixed.friction, fixed.scalar
        self.first, self.constraint, self.dim, self.most = fixed.first, fixed.constraint, fixed.dim, fixed.most

    def tree_flatten(self) -> tuple[tuple[Any, ...], _Fixed]:
        """The per-world parameters, and the static part."""
        fixed = self._fixed
        numbers = ((self.loss, fixed.loss), (self.slot_friction, fixed.slot_friction))
        return tuple(value if known is None else None for value, known in numbers), fixed

    @classmethod
    def tree_unflatten(cls, fixed: _Fixed, leaves: tuple[Any, ...]) -> RowLaw:
        """Rebuild from the leaves and the static part."""
        law = object.__new__(cls)
        law.loss = leaves[0] if fixed.loss is None else fixed.loss
        law.slot_friction = leaves[1] if fixed.slot_friction is None else fixed.slot_friction
        law._note(fixed)
        return law

    @property
    def bounds(self) -> tuple[Any, Any]:
        """Smallest and largest force (n,) of each row outside cones."""
        xp, loss = tables(self.loss)
        low = xp.where(self.equality, -np.inf, xp.where(self.friction, -loss, 0.0))
        return low, xp.where(self.friction, loss, np.inf)

    @property
    def cones(self) -> list[Cones]:
        """The elliptic cones, one entry per dimension."""
        friction = self.slot_friction
        return [
            Cones(rows, friction[slots, 0] / self._fixed.impratio, friction[slots, : rows.shape[1] - 1])
            for slots, rows in self._fixed.cones
        ]

    @property
    def cone_friction(self) -> Any:
        """Friction (n, most - 1) of the cone whose first row the row is; padded with 1."""
        if self.most == 1:
            return np.ones((self.dim.size, 0))
        xp, friction = tables(self.slot_friction)
        real = np.arange(1, self.most) < self.dim[:, None]
        return xp.where(real, friction[self._fixed.slot, : self.most - 1], 1.0)

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
        """First and second derivative () of the cost at x + alpha v, as a function of alpha ()."""

        def derivatives(alpha: jax.Array) -> tuple[jax.Array, jax.Array]:
            force, change = jax.jvp(lambda y: self.force(D, y), (x + alpha * v,), (v,))
            return -dot(force, v), -dot(change, v)

        return derivatives

    def confined(self, force: jax.Array) -> jax.Array:
        """Forces (n,) clamped to their bounds, or projected into their cones at unchanged normal force."""
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
        return jnp.concatenate(parts)[self._fixed.place] if self._fixed.cones else parts[0]

    def _slope_mask(self, D: jax.Array, x: jax.Array) -> jax.Array:
        """Which scalar rows have a quadratic cost at x."""
        rows = self.scalar
        x, D = x[rows], D[rows]
        within = jnp.abs(D * x) < const(self.loss[rows], x)
        return jnp.where(self.equality[rows], True, jnp.where(self.friction[rows], within, x < 0))

    def _scalar_force(self, D: jax.Array, x: jax.Array) -> jax.Array:
        rows = self.scalar
        on = self._slope_mask(D, x)
        slip = const(self.loss[rows], x) * -jnp.sign(x[rows])
        exists = D[rows] > 0
        return jnp.where(exists, jnp.where(on, -D[rows] * x[rows], slip), 0.0)

    def _scalar_cost(self, D: jax.Array, x: jax.Array) -> jax.Array:
        rows = self.scalar
        on, loss = self._slope_mask(D, x), const(self.loss[rows], x)
        x, D = x[rows], D[rows]
        slip = loss * (jnp.abs(x) - 0.5 * loss / jnp.where(D > 0, D, 1.0))
        return jnp.where(D > 0, jnp.where(on, 0.5 * D * x * x, slip), 0.0)


def _constants(cones: Cones, like: jax.Array) -> tuple[jax.Array, jax.Array]:
    return const(cones.mu, like), const(cones.friction, like)


def _cone(
    D: jax.Array, x: jax.Array, mu: jax.Array, friction: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array, jax.Array]:
    """For a cone at x (dim,): whether its cost is zero, whether quadratic; N - mu T, u = U / T (dim - 1,), and Dm."""
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
