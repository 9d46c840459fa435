"""`Rows`: constraint rows before their solver parameters are computed, in JAX, for one world."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from simengine.physics.constraints.soft_constraint_jax import clamped_solimp, impedance, stiffness_damping
from simengine.physics.math.tree_matrices_jax import RowMatrix, scaled, stacked, times
from simengine.physics.math.vector_jax import MINVAL, const, joined, tables

LEAST_SHARE = 2e-4
"""Least regularisation of an edge of a pyramid in float32; see `pyramid_share` in rows.cuh."""


class Rows(NamedTuple):
    """n rows. An attribute that depends neither on the state nor on per-world parameters is a NumPy array.

    Attributes:
        listed (n,) bool: whether a row may exist; it does if its distance is below zero, or if `always`.
        always: whether the rows exist at any distance.
        J (n, nv): Jacobian.
        pos (n,): constraint position [m, rad].
        margin (n,): position at which the row acts.
        distance (n,): distance from the margin, on which the impedance depends; the rows of a contact share one, and so
            do those of an equality constraint, whose position is a vector.
        drift (n,): rate of J times qvel, which the reference acceleration cancels [m/s^2, rad/s^2].
        solref (n, 2), solimp (n, 5): solver parameters.
        scale (n,): regularisation per unit (1 - d) / d.
        share (n,): regularisation relative to that of the contact's normal, which has the lower bound MINVAL; None
            means 1.
    """

    listed: jax.Array
    always: bool
    J: RowMatrix
    pos: jax.Array
    margin: np.ndarray
    distance: jax.Array
    drift: jax.Array
    solref: np.ndarray
    solimp: np.ndarray
    scale: Any
    share: Any = None

    @property
    def active(self) -> jax.Array:
        """(n,) bool: whether the row exists."""
        return self.listed if self.always else self.listed & (self.distance < 0)


def translation_weights(m: Any, dtype: Any) -> Any:
    """Mean inverse inertia of each body along a line (nbody,), with a least one in float32; see rows.cuh."""
    if np.dtype(dtype) != np.float32:
        return m.body_invweight0[:, 0]
    xp, invweight, least = tables(m.body_invweight0, m.body_leastweight)
    return xp.maximum(invweight[:, 0], least * invweight[:, 1])


def empty(nv: int, like: jax.Array) -> Rows:
    """No rows, in `like`'s dtype."""
    none, table = jnp.zeros(0, like.dtype), np.zeros(0)
    J = jnp.zeros((0, nv), like.dtype)
    pairs, fives = np.zeros((0, 2)), np.zeros((0, 5))
    return Rows(none.astype(bool), True, J, none, table, none, none, pairs, fives, table)


def solver_rows(blocks: list[Rows], qvel: jax.Array, leastref: float) -> tuple[Any, ...]:
    """Rows of all blocks: (active, J, pos, margin, D, aref); all except `active` are zero in rows that do not exist.

    With r the distance from the margin, d(r) the impedance, and R = (1 - d) / d times the scale: D = 1 / R, and
    aref = -b J qvel - k d (pos - margin) - drift; `leastref` bounds time constants [s].
    """
    parts = {name: [getattr(block, name) for block in blocks] for name in ("active", *Rows._fields)}
    active = jnp.concatenate(parts["active"])
    exists = active.astype(qvel.dtype)
    J = scaled(stacked(parts["J"]), exists)
    distance = jnp.where(active, jnp.concatenate(parts["distance"]), 0.0)
    margin = const(np.concatenate(parts["margin"]), qvel)
    pos = jnp.where(active, jnp.concatenate(parts["pos"]), 0.0)
    solimp = clamped_solimp(np.concatenate(parts["solimp"]))
    k, b = stiffness_damping(np.concatenate(parts["solref"]), solimp, leastref)
    d = impedance(solimp, distance)
    shares = [np.ones(len(block.scale)) if block.share is None else block.share for block in blocks]
    least = const(MINVAL * joined(*shares), d)
    regularisation = jnp.maximum(const(joined(*parts["scale"]), d) * (1.0 - d) / d, least)
    spring = const(k, d) * d * (pos - margin) + jnp.concatenate(parts["drift"])
    aref = -const(b, d) * times(J, qvel) - spring
    return active, J, pos, margin * exists, exists / regularisation, aref * exists
