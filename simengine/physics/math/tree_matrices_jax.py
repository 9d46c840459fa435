"""Inertia and Jacobians by families of bodies in JAX, and products that take these or dense matrices.

See `forest_jax` for families. The functions take dense arrays too, which most models have.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simengine.physics.math.forest_jax import Forest
from simengine.physics.math.vector_jax import matmul


@jax.tree_util.register_pytree_node_class
class TreeMatrix:
    """A block-diagonal matrix of the dofs, with a block for each family.

    Args:
        blocks: (nfamily, w, w), which are those of the identity in the padding.
        forest: the families.
    """

    def __init__(self, blocks: jax.Array, forest: Forest):
        self.blocks, self.forest = blocks, forest

    def tree_flatten(self) -> tuple[tuple[jax.Array], Forest]:
        """The blocks, and the static part."""
        return (self.blocks,), self.forest

    @classmethod
    def tree_unflatten(cls, forest: Forest, leaves: tuple[jax.Array]) -> TreeMatrix:
        """Rebuild from the blocks and the static part."""
        return cls(leaves[0], forest)

    def dense(self) -> jax.Array:
        """The matrix (..., nv, nv), of blocks (..., nfamily, w, w)."""
        forest, n = self.forest, self.forest.nv
        rows, columns = np.broadcast_arrays(forest.dofs[:, :, None], forest.dofs[:, None, :])
        real = (rows < n) & (columns < n)
        zero = jnp.zeros((*self.blocks.shape[:-3], n, n), self.blocks.dtype)
        return zero.at[..., rows[real], columns[real]].set(self.blocks[..., real])


@jax.tree_util.register_pytree_node_class
class TreeRows:
    """Rows over the dofs of one or two families each.

    Args:
        values: (n, parts, w) entries at the dofs of each family, zero in its padding.
        families: (n, parts) the families; nfamily where there is none, whose entries are zero.
        forest: all families.
    """

    def __init__(self, values: jax.Array, families: np.ndarray, forest: Forest):
        self.values, self.families, self.forest = values, families, forest

    def tree_flatten(self) -> tuple[tuple[jax.Array], tuple[bytes, int, Forest]]:
        """The values, and the static part."""
        return (self.values,), (self.families.astype(np.int64).tobytes(), self.families.shape[1], self.forest)

    @classmethod
    def tree_unflatten(cls, static: tuple[bytes, int, Forest], leaves: tuple[jax.Array]) -> TreeRows:
        """Rebuild from the values and the static part."""
        return cls(leaves[0], np.frombuffer(static[0], np.int64).reshape(-1, static[1]), static[2])

    def with_values(self, values: jax.Array) -> TreeRows:
        """Rows over the same dofs with other values (n, parts, w), which may have another shape of as many."""
        return TreeRows(values.reshape(self.values.shape), self.families, self.forest)

    def dense(self) -> jax.Array:
        """The rows (..., n, nv), of values (..., n, parts, w)."""
        n, columns = self.forest.nv, np.append(self.forest.dofs, [[self.forest.nv] * self.forest.dofs.shape[1]], axis=0)
        columns = columns[self.families]
        rows = np.broadcast_to(np.arange(len(columns))[:, None, None], columns.shape)
        zero = jnp.zeros((*self.values.shape[:-3], len(columns), n + 1), self.values.dtype)
        return zero.at[..., rows, columns].add(self.values)[..., :n]


Matrix = jax.Array | TreeMatrix
RowMatrix = jax.Array | TreeRows


def times(a: Matrix | RowMatrix, x: jax.Array) -> jax.Array:
    """Product with a vector (nv,): (nv,) of a square matrix, (n,) of rows."""
    if isinstance(a, TreeMatrix):
        return a.forest.to_dofs(matmul(a.blocks, a.forest.of_dofs(x)[..., None])[..., 0])
    if isinstance(a, TreeRows):
        own = a.forest.of_dofs(x)
        own = jnp.concatenate([own, jnp.zeros_like(own[:1])])[a.families]
        return (a.values * own).sum(axis=(1, 2))
    return matmul(a, x)


def pulled(x: jax.Array, rows: RowMatrix) -> jax.Array:
    """Sum (nv,) of rows times the entries of x (n,)."""
    if not isinstance(rows, TreeRows):
        return matmul(x, rows)
    return rows.forest.to_dofs(_by_family(rows, rows.values * x[:, None, None]))


def _by_family(rows: TreeRows, parts: jax.Array) -> jax.Array:
    """Sums (nfamily, ...) of what the parts of rows (n, parts, ...) add to their families."""
    flat, number = parts.reshape(-1, *parts.shape[2:]), len(rows.forest.dofs)
    return jax.ops.segment_sum(flat, rows.families.ravel(), number + 1)[:number]


def plus_diagonal(M: Matrix, added: jax.Array) -> Matrix:
    """The matrix with `added` (nv,) on its diagonal."""
    if isinstance(M, TreeMatrix):
        eye = jnp.eye(M.blocks.shape[-1], dtype=added.dtype)
        return TreeMatrix(M.blocks + M.forest.of_dofs(added)[:, :, None] * eye[None], M.forest)
    return M + jnp.diag(added)


def factor(M: Matrix) -> Matrix:
    """The lower triangular L with M = L L', zero above the diagonal; of a symmetric M that is positive definite."""
    if isinstance(M, TreeMatrix):
        return TreeMatrix(jax.lax.linalg.cholesky(M.blocks, symmetrize_input=False), M.forest)
    return jax.lax.linalg.cholesky(M, symmetrize_input=False)


def solve_factored(L: Matrix, x: jax.Array) -> jax.Array:
    """The solution (nv,) of L L' y = x (nv,)."""
    if isinstance(L, TreeMatrix):
        return L.forest.to_dofs(jax.scipy.linalg.cho_solve((L.blocks, True), L.forest.of_dofs(x)[..., None])[..., 0])
    return jax.scipy.linalg.cho_solve((L, True), x)


def solve(M: Matrix, x: jax.Array) -> jax.Array:
    """The solution (nv,) of M y = x (nv,), for an M that need not be definite."""
    if isinstance(M, TreeMatrix):
        return M.forest.to_dofs(jnp.linalg.solve(M.blocks, M.forest.of_dofs(x)[..., None])[..., 0])
    return jnp.linalg.solve(M, x)


def gram_blocks(left: TreeRows, right: TreeRows) -> jax.Array:
    """The blocks (nfamily, w, w) of left' right on the diagonal; both have the same dofs."""
    return _by_family(left, left.values[..., :, None] * right.values[..., None, :])


def stacked(parts: list[Any]) -> Any:
    """The rows of several parts, one after another."""
    first = parts[0]
    if not isinstance(first, TreeRows):
        return jnp.concatenate(parts)
    most = max(part.families.shape[1] for part in parts)
    lack = [(0, most - part.families.shape[1]) for part in parts]
    values = [jnp.pad(part.values, ((0, 0), pad, (0, 0))) for part, pad in zip(parts, lack, strict=True)]
    none = len(first.forest.dofs)
    families = [
        np.pad(part.families, ((0, 0), pad), constant_values=none) for part, pad in zip(parts, lack, strict=True)
    ]
    return TreeRows(jnp.concatenate(values), np.concatenate(families), first.forest)


def scaled(rows: RowMatrix, x: jax.Array) -> Any:
    """Rows times the entries of x (n,)."""
    if isinstance(rows, TreeRows):
        return rows.with_values(rows.values * x[:, None, None])
    return rows * x[:, None]
