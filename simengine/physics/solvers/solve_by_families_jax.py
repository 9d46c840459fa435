"""Linear systems with the Hessian M + J' W J of a world of many trees, in JAX.

The method is that of conjugate gradients: M. Hestenes and E. Stiefel, J. Res. Nat. Bur. Stand. 49 (1952). Its
preconditioner is the part of the Hessian within families of bodies, so where bodies touch nothing but what cannot move,
one iteration suffices. In a heap the iterations grow with the number of bodies between a force and what it moves.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from simengine.physics.math.tree_matrices_jax import (
    Matrix,
    TreeMatrix,
    TreeRows,
    factor,
    gram_blocks,
    pulled,
    solve_factored,
    times,
)
from simengine.physics.math.vector_jax import dot

_MOST = 400  # iterations
_EXACT = 64.0  # rounding units by which the residual must fall


class _State(NamedTuple):
    x: jax.Array
    residual: jax.Array
    scaled: jax.Array
    search: jax.Array
    size: jax.Array
    iteration: jax.Array


def solve_by_families(M: TreeMatrix, J: TreeRows, weighted: TreeRows, rhs: jax.Array) -> jax.Array:
    """The solution (nv,) of (M + J' W J) x = rhs (nv,); `weighted` is W J, whose dofs are those of J.

    It is linear in rhs, with a derivative and a transpose.
    """
    near = factor(TreeMatrix(M.blocks + gram_blocks(J, weighted), M.forest))

    def product(v: jax.Array) -> jax.Array:
        return times(M, v) + pulled(times(weighted, v), J)

    return jax.lax.custom_linear_solve(product, rhs, lambda apply, b: _conjugate(apply, near, b), symmetric=True)


def _conjugate(product: Callable[[jax.Array], jax.Array], near: Matrix, rhs: jax.Array) -> jax.Array:
    """Conjugate gradients from zero, preconditioned by a factor of a matrix that is near the product's."""
    least = (_EXACT * float(jnp.finfo(rhs.dtype).eps)) ** 2

    def iterate(s: _State) -> _State:
        along = product(s.search)
        curve = dot(s.search, along)
        step = jnp.where(curve > 0, s.size / jnp.where(curve > 0, curve, 1.0), 0.0)
        residual = s.residual - step * along
        scaled = solve_factored(near, residual)
        size = dot(residual, scaled)
        search = scaled + size / s.size * s.search
        return _State(s.x + step * s.search, residual, scaled, search, size, s.iteration + 1)

    first = solve_factored(near, rhs)
    size = dot(rhs, first)
    start = _State(jnp.zeros_like(rhs), rhs, first, first, size, jnp.zeros((), jnp.int32))
    return jax.lax.while_loop(lambda s: (s.size > least * size) & (s.iteration < _MOST), iterate, start).x
