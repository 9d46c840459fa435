"""Cholesky factor of the joint-space inertia matrix in JAX, for one world."""

from __future__ import annotations

from typing import Any

from simengine.physics.math.tree_matrices_jax import Matrix, factor


def factor_m(m: Any, qM: Matrix) -> tuple[Matrix]:
    """qLD (nv, nv): the lower triangular L with qM = L L', zero above the diagonal.

    MuJoCo factors M = L' D L instead; products with the inverse of M are the same.
    """
    # (1) L L' = M
    return (factor(qM),)
