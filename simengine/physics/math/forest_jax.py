"""Sums over kinematic trees, in JAX: one product with a mask, or many small ones in a world of many trees.

A world with thousands of bodies has no room for masks of all pairs. A `Forest` splits it into families: the bodies that
one child of the world body carries, with that child. Nothing but constraints couples families, so inertia is
block-diagonal, and each sum needs the pairs within a family only. Families are padded to the size of the largest.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simengine.physics.math import tree_jax as tree
from simengine.physics.math.vector_jax import const, matmul

FEWEST_DOFS = 1000
"""Fewest dofs of a world that is computed by families; dense matrices of fewer take a few megabytes."""

_GAIN = 4  # by how much fewer numbers the families must need


class Forest:
    """The families of a model, which hold everything but the world body.

    Forests of the same trees are equal, so that they can be static parts of pytrees.

    Attributes:
        nv, nbody: sizes of the model.
        dofs: (nfamily, w) dofs of each family, padded with nv.
        bodies: (nfamily, k) its bodies, padded with nbody.
        dof_family, body_family: (nv,) and (nbody,) the family of each; nfamily for the world body.
        dof_at, body_at: (nv,) and (nbody,) its number in the family.
        dof_place, body_place: (nv,) and (nbody,) its index in the flattened `dofs` or `bodies`; past the end for the
            world body.
        inside: (nfamily, k, k) bool: [i, j] is true where body j is in the subtree of body i.
        moves: (nfamily, k, w) bool: [b, j] is true where dof j moves body b.
        above, before: (nfamily, w, w) bool: `dof_ancestors` and `dofs_before` of the family.
    """

    def __init__(self, body: np.ndarray, dof: np.ndarray, turning: np.ndarray):
        """Split a model: parent and root (2, nbody) of bodies, body and parent (2, nv) of dofs, quaternions' dofs."""
        (parent, root), (dof_body, dof_parent) = body, dof
        self._key = (body.tobytes(), dof.tobytes(), turning.tobytes())
        self.nbody, self.nv = len(parent), len(dof_body)
        # families are numbered like their roots; the world body is the root of none, and comes after the last
        is_root = (root == np.arange(self.nbody)) & (root > 0)
        number = int(is_root.sum())
        self.body_family = np.where(root > 0, np.cumsum(is_root)[root] - 1, number)
        self.dof_family = self.body_family[dof_body]
        self.bodies, body_at = _padded(self.body_family[1:], number, self.nbody, 1)
        self.body_at = np.concatenate([[0], body_at])
        self.dofs, self.dof_at = _padded(self.dof_family, number, self.nv, 0)
        self.body_place = self.body_family * self.bodies.shape[1] + self.body_at
        self.dof_place = self.dof_family * self.dofs.shape[1] + self.dof_at
        self.inside = self._inside(parent)
        moves = np.zeros((number, self.dofs.shape[1], self.bodies.shape[1]), bool)
        moves[self.dof_family, self.dof_at] = self.inside[self.dof_family, self.body_at[dof_body]]
        self.moves = moves.transpose(0, 2, 1)
        self.above = self._above(dof_parent)
        self.before = self.above & ~np.eye(self.dofs.shape[1], dtype=bool)
        for first in turning:  # see `tree.dofs_before`
            of, at = self.dof_family[first], int(self.dof_at[first])
            self.before[of, at : at + 3] = self.before[of, at]

    def _inside(self, parent: np.ndarray) -> np.ndarray:
        number, most = self.bodies.shape
        inside = np.zeros((number, most, most), bool)
        for j in range(1, self.nbody):
            of, at = self.body_family[j], self.body_at[j]
            if parent[j]:
                inside[of, :, at] = inside[of, :, self.body_at[parent[j]]]
            inside[of, at, at] = True
        return inside

    def _above(self, dof_parent: np.ndarray) -> np.ndarray:
        number, most = self.dofs.shape
        above = np.zeros((number, most, most), bool)
        for i in range(self.nv):
            of, at = self.dof_family[i], self.dof_at[i]
            if dof_parent[i] >= 0:
                above[of, at] = above[of, self.dof_at[dof_parent[i]]]
            above[of, at, at] = True
        return above

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Forest) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def of_dofs(self, x: jax.Array) -> jax.Array:
        """Entries of dofs (nv, ...) by families (nfamily, w, ...), with zeros in the padding."""
        return _with_zeros(x)[self.dofs]

    def of_bodies(self, x: jax.Array) -> jax.Array:
        """Entries of bodies (nbody, ...) by families (nfamily, k, ...), with zeros in the padding."""
        return _with_zeros(x)[self.bodies]

    def to_dofs(self, x: jax.Array) -> jax.Array:
        """Entries by families (nfamily, w, ...) in the order of dofs (nv, ...)."""
        return x.reshape(-1, *x.shape[2:])[self.dof_place]

    def to_bodies(self, x: jax.Array) -> jax.Array:
        """Entries by families (nfamily, k, ...) in the order of bodies (nbody, ...), with zero for the world body."""
        return _with_zeros(x.reshape(-1, *x.shape[2:]))[self.body_place]


def _padded(family: np.ndarray, number: int, none: int, first: int) -> tuple[np.ndarray, np.ndarray]:
    """Members (number, most) of each family, padded with `none`, and the place (n,) of each member in its own.

    Members are numbered from `first`, in the order of their families.
    """
    count = np.bincount(family, minlength=number)
    place = np.arange(family.size) - np.repeat(np.cumsum(count) - count, count)
    members = np.full((number, max(1, int(count.max(initial=0)))), none)
    members[family, place] = first + np.arange(family.size)
    return members, place


def _with_zeros(x: jax.Array) -> jax.Array:
    return jnp.concatenate([x, jnp.zeros((1, *x.shape[1:]), x.dtype)])


def forest_of(m: Any) -> Forest | None:
    """The families by which a world is computed, or None if it is computed with dense matrices.

    Equality constraints, tendons, PGS, noslip and the implicit integrators have dense matrices only.
    """
    dense = m.neq or m.ntendon or m.opt_noslip_iterations or m.solver == "solve_pgs"
    if dense or not m.nv or m.opt_integrator in ("implicit", "implicitfast"):
        return None
    sizes = (np.bincount(np.asarray(m.body_rootid)[1:]), np.bincount(np.asarray(m.body_rootid)[m.dof_bodyid]))
    return _forest(*_structure(m)) if worth_families(m, *(int(size.max(initial=0)) for size in sizes)) else None


def worth_families(m: Any, bodies: int, dofs: int) -> bool:
    """Whether a world is large, and matrices by families of so many bodies and dofs are much smaller than dense ones.

    Counted are the numbers of the inertia and of the Jacobian, whose rows add a block to each of two families.
    """
    families = int((np.asarray(m.body_rootid)[1:] == np.arange(1, m.nbody)).sum())
    small = families * (bodies + dofs) ** 2 + 2 * m.nefc_max * dofs**2
    return bool(m.nv >= FEWEST_DOFS and _GAIN * small <= (m.nv + m.nefc_max) * m.nv)


def _structure(m: Any) -> tuple[bytes, bytes, bytes]:
    fields = ((m.body_parentid, m.body_rootid), (m.dof_bodyid, m.dof_parentid), tree.quaternions(m)[1])
    body, dof, turning = (np.asarray(field, np.int64).tobytes() for field in fields)
    return body, dof, turning


@lru_cache(maxsize=16)
def _forest(body: bytes, dof: bytes, turning: bytes) -> Forest:
    bodies, dofs, quaternions = (np.frombuffer(part, np.int64) for part in (body, dof, turning))
    return Forest(bodies.reshape(2, -1), dofs.reshape(2, -1), quaternions)


def moved(m: Any, x: jax.Array) -> jax.Array:
    """Sums (nbody, n) of entries of dofs (nv, n) over those that move each body."""
    forest = forest_of(m)
    if forest is None:
        return matmul(const(tree.body_dofs(m), x), x)
    return forest.to_bodies(matmul(const(forest.moves, x), forest.of_dofs(x)))


def carried(m: Any, x: jax.Array) -> jax.Array:
    """Sums (nv, n) of entries of bodies (nbody, n) over those that each dof moves."""
    forest = forest_of(m)
    if forest is None:
        return matmul(const(tree.body_dofs(m).T, x), x)
    return forest.to_dofs(matmul(const(forest.moves.transpose(0, 2, 1), x), forest.of_bodies(x)))


def subtree_sums(forest: Forest, x: jax.Array) -> jax.Array:
    """Sums (nbody, n) of entries of bodies (nbody, n) over each subtree; that of the world body is zero."""
    return forest.to_bodies(matmul(const(forest.inside, x), forest.of_bodies(x)))
