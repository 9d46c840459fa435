"""Springs and dampers whose stiffness and damping may be polynomials; see `springs.cuh`.

Parameters are tables with one entry per spring or damper. Polynomial coefficients are NumPy arrays, so that the graph
holds nothing for linear springs and dampers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from simengine.physics.math import quaternion_jax as quaternion
from simengine.physics.math import tree_jax as tree
from simengine.physics.math.forest_jax import forest_of
from simengine.physics.math.vector_jax import const, dot, matmul, safe_sqrt


def rate_at(linear: Any, poly: Any, x: jax.Array) -> jax.Array:
    """Stiffness at stretch x (n,), or damping at speed x; `linear` (n,), `poly` (n, 2)."""
    if not np.any(poly):
        return const(linear, x)
    first, second = const(np.asarray(poly), x).T
    return const(linear, x) + x * (first + x * second)


def damper_force(damping: Any, poly: Any, velocity: jax.Array) -> jax.Array:
    """Force (n,) of dampers at a velocity (n,)."""
    return -rate_at(damping, poly, jnp.abs(velocity)) * velocity


def damper_slope(damping: Any, poly: Any, velocity: jax.Array) -> jax.Array:
    """Minus the derivative (n,) of the dampers' force with respect to the velocity (n,)."""
    return rate_at(damping, np.asarray(poly) * (2.0, 3.0), jnp.abs(velocity))


def spring_energy(stiffness: Any, poly: Any, x: jax.Array) -> jax.Array:
    """Energy () of springs stretched by x (n,)."""
    return jnp.sum(rate_at(0.5 * stiffness, np.asarray(poly) / (3.0, 4.0), x) * x * x)


def tendon_pull(m: Any, chosen: np.ndarray, length: jax.Array, velocity: jax.Array) -> jax.Array:
    """Force (n,) along the chosen tendons: dampers, and springs, which have no force within a range of lengths."""
    low, high = const(np.asarray(m.tendon_lengthspring)[chosen], length).T
    stretch = length - jnp.clip(length, low, high)
    stiffness, damping = m.tendon_stiffness[chosen], m.tendon_damping[chosen]
    spring = rate_at(stiffness, np.asarray(m.tendon_stiffnesspoly)[chosen], stretch) * stretch
    return damper_force(damping, np.asarray(m.tendon_dampingpoly)[chosen], velocity) - spring


class Stretch(NamedTuple):
    """How far the springs of joints are stretched; see `springs.cuh`.

    Attributes:
        dof: (n,) dofs on which the springs act.
        joint: (n,) their joints.
        along: (n,) the stretch, or one component of a stretch vector.
        size: (n,) the same stretch, or the length of the vector.
        first: (n,) bool, true for a scalar stretch and for the first component of a vector.
    """

    dof: np.ndarray
    joint: np.ndarray
    along: jax.Array
    size: jax.Array
    first: np.ndarray


def joint_stretch(m: Any, qpos: jax.Array) -> Stretch:
    """How far qpos (nq,) is from the rest positions of the joints' springs."""
    adr, dof = tree.plain_coordinates(m)
    quat_adr, quat_dof = tree.quaternions(m)
    along = qpos[adr] - const(m.qpos_spring[adr], qpos)
    if quat_adr.size:
        quats = quat_adr[:, None] + np.arange(4)
        rest, stands = const(m.qpos_spring[quats], qpos), quaternion.renormalize(qpos[quats])
        along = jnp.concatenate([along, quaternion.difference(rest, stands).ravel()])
    turns = np.repeat([False, True], [adr.size, 3 * quat_adr.size])
    dof = np.concatenate([dof, (quat_dof[:, None] + np.arange(3)).ravel()]).astype(int)
    joint = np.asarray(m.dof_jntid)[dof]
    vector = turns | (np.asarray(m.jnt_type)[joint] == tree.FREE)
    size = along
    number = (dof - np.asarray(m.jnt_dofadr)[joint]) % 3  # of the component, in a vector
    if vector.any():
        first = np.arange(dof.size) - np.where(vector, number, 0)
        of_vector = along[np.minimum(first[:, None] + np.arange(3), dof.size - 1)]
        size = jnp.where(vector, safe_sqrt(dot(of_vector, of_vector)), along)
    return Stretch(dof, joint, along, size, ~vector | (number == 0))


def at_dofs(m: Any, dof: np.ndarray, values: jax.Array) -> jax.Array:
    """A vector (nv,) with values (n,) at some dofs (n,), and zero elsewhere."""
    if forest_of(m) is None:
        return matmul(const(np.arange(m.nv)[:, None] == dof, values), values)
    return jnp.zeros(m.nv, values.dtype).at[dof].set(values)
