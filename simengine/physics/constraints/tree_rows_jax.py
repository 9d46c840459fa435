"""Jacobians of constraint rows by families of bodies in JAX, for one world of many trees; see `forest_jax`.

These take the place of the dense ones that `constraint_jax` has for other worlds.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simengine.physics.constraints.row_layout_jax import RowLayout, per_row, row_directions
from simengine.physics.math import tree_jax as tree
from simengine.physics.math.forest_jax import Forest
from simengine.physics.math.spatial_jax import wrench_about
from simengine.physics.math.tree_matrices_jax import TreeRows
from simengine.physics.math.vector_jax import const, matmul


def dof_rows(forest: Forest, dof: np.ndarray, values: jax.Array) -> TreeRows:
    """Rows (n,) whose entries at the dofs (n, k) of one joint are values (n, k), and zero elsewhere."""
    n, w = len(dof), forest.dofs.shape[1]
    zero = jnp.zeros((n, 1, w), values.dtype)
    entries = zero.at[np.arange(n)[:, None], 0, forest.dof_at[dof]].set(values)
    return TreeRows(entries, forest.dof_family[dof[:, :1]], forest)


def limit_rows(m: Any, forest: Forest, layout: RowLayout, qpos: jax.Array) -> tuple[jax.Array, TreeRows]:
    """Coordinate (n,) of the joint of each limit row, and the row without the sign of its side.

    A ball joint has no coordinate: `constraint_jax` fills in what its limit acts on, and here its row is zero.
    """
    joint = layout.limit_id
    scalar = np.asarray(m.jnt_type)[joint] >= tree.SLIDE
    length = qpos[np.asarray(m.jnt_qposadr)[joint]] * const(scalar, qpos)
    dof = np.asarray(m.jnt_dofadr)[joint][:, None]
    return length, dof_rows(forest, dof, const(scalar, qpos)[:, None])


def with_axes(rows: TreeRows, row: np.ndarray, dof: np.ndarray, axes: jax.Array) -> TreeRows:
    """The rows with axes (n, 3) at three dofs from `dof` (n,) in some of them, `row` (n,)."""
    at = rows.forest.dof_at[dof[:, None] + np.arange(3)]
    return rows.with_values(rows.values.at[row[:, None], 0, at].set(axes))


def contact_rows(
    m: Any,
    forest: Forest,
    layout: RowLayout,
    subtree_com: jax.Array,
    cdof: jax.Array,
    pos: jax.Array,
    frame: jax.Array,
) -> TreeRows:
    """The generalised force of a unit force along each contact row's direction, on the families of its two bodies.

    The force acts on the second body, and its reaction on the first; in one family, a dof that moves both has none.
    """
    body1, body2 = layout.contact_body.T
    direction, torque = row_directions(layout, frame)
    at, own = per_row(layout, pos), forest.of_dofs(cdof)
    family1, family2 = forest.body_family[body1], forest.body_family[body2]
    none = len(forest.dofs)
    padded = np.concatenate([forest.moves, np.zeros_like(forest.moves[:1])])

    def felt(body: np.ndarray, family: np.ndarray, sign: np.ndarray) -> jax.Array:
        wrench = wrench_about(subtree_com[np.asarray(m.body_rootid)[body]], at, direction, torque)
        axes = own[np.minimum(family, none - 1)]
        return matmul(axes, wrench[..., None])[..., 0] * const(sign, cdof)

    def moves(body: np.ndarray, family: np.ndarray) -> np.ndarray:
        return padded[family, forest.body_at[body]].astype(np.int64)

    together = family1 == family2
    sign1, sign2 = moves(body1, family1), moves(body2, family2)
    of_second = felt(body2, family2, sign2 - sign1 * together[:, None])
    apart = sign1 * ~together[:, None]
    if not apart.any():
        return TreeRows(of_second[:, None], family2[:, None], forest)
    of_first = -felt(body1, family1, apart)
    families = np.stack([family2, np.where(together, none, family1)], axis=1)
    return TreeRows(jnp.stack([of_second, of_first], axis=1), families, forest)
