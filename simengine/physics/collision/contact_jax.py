"""Contact geometry shared by the pair functions: sphere against sphere, frames, clamped segment parameters.

A contact is (dist, pos, frame): signed distance [m], negative in penetration; the midpoint of the two surfaces; and
the rows normal, tangent, tangent of a right-handed frame, flattened to nine, the normal pointing from geom1 to geom2.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from simengine.physics.math.vector_jax import const, cross, dot, normalize

_STEADY = 1e-3  # sine of the angle to the axis below which a direction's turn about the axis has no derivative

NO_CONTACT = 1e10
"""Distance [m] of a contact slot that its pair does not use."""


def make_frame(normal: jax.Array, tangent: jax.Array | None = None) -> jax.Array:
    """Frame (..., 9) whose first row is `normal`.

    Args:
        normal: (..., 3) unit vector.
        tangent: (..., 3) direction whose component perpendicular to the normal becomes the second row; without it, the
            world's y axis is used, or its z axis where the normal is within 60 degrees of y. Where the direction is
            almost the normal, the frame spins fast about the normal as the direction turns, without bound. The
            derivative leaves that turn out.
    """
    if tangent is None:
        y = normal[..., 1:2]
        across = ((y > -0.5) & (y < 0.5)).astype(normal.dtype)
        zero = jnp.zeros_like(across)
        tangent = jnp.concatenate([zero, across, 1.0 - across], axis=-1)
    tangent, sine = normalize(tangent - normal * dot(normal, tangent)[..., None], _x_axis(tangent))
    tangent = without_spin(tangent, sine, normal)
    return jnp.concatenate([normal, tangent, cross(normal, tangent)], axis=-1)


def without_spin(across: jax.Array, sine: jax.Array, axis: jax.Array) -> jax.Array:
    """Unit vectors across axes, whose derivatives leave out the turn about the axis where that has no bound.

    Args:
        across: (..., 3) unit vectors, the parts of some directions perpendicular to the axis.
        sine: (...) of the angle between these directions and the axis. Where it is almost zero, the vector spins fast.
        axis: (..., 3) unit vectors.
    """
    held = jax.lax.stop_gradient(across)
    tilting, _ = normalize(held - axis * dot(axis, held)[..., None], held)
    return jnp.where((sine > _STEADY)[..., None], across, held + (tilting - jax.lax.stop_gradient(tilting)))


def z_axis(mat: jax.Array) -> jax.Array:
    """Third column (..., 3) of row-major rotation matrices (..., 9)."""
    return mat[..., 2::3]


def spheres(
    pos1: jax.Array,
    radius1: jax.Array,
    axis1: jax.Array,
    pos2: jax.Array,
    radius2: jax.Array,
    axis2: jax.Array,
    inner1: jax.Array | None = None,
    inner2: jax.Array | None = None,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Contact of two spheres: dist (...), pos (..., 3), normal (..., 3).

    Args:
        pos1, radius1, axis1, pos2, radius2, axis2: centres (..., 3) [m], radii (...) [m], and axes (..., 3). The cross
            product of the axes is the normal where the centres coincide up to rounding, or the x axis if the axes are
            parallel.
        inner1, inner2: (...) bool: whether a centre is an inner point of a capsule's segment along the axis, so that
            the normal is perpendicular to it. Where the centres are close, the axis is more accurate than their
            difference, which has rounding errors. With two such axes, the difference only decides the sign of the
            normal.
    """
    fallback = cross(axis1, axis2)
    fallback, sine = normalize(fallback, _x_axis(fallback))
    # in planar mechanisms axes intersect exactly, and the rounding of their positions must not decide the normal
    extent = jnp.maximum(jnp.abs(pos1).max(axis=-1), jnp.abs(pos2).max(axis=-1)) + radius1 + radius2
    least = 16.0 * jnp.finfo(pos1.dtype).eps * extent
    normal, distance = normalize(pos2 - pos1, fallback, least)
    none = jnp.zeros(distance.shape, bool)
    inner1, inner2 = (none if inner is None else inner for inner in (inner1, inner2))
    apart = distance >= least
    better = inner1 & inner2 & apart & (distance < sine * extent)
    # axes that are almost parallel leave the points on them inexact, and not the distance across both axes
    side = jnp.where(distance * dot(fallback, normal) > -least, 1.0, -1.0)
    lying = _across(normal, jnp.where(inner1[..., None], axis1, axis2))
    normal = jnp.where((apart & (inner1 ^ inner2))[..., None], lying, normal)
    normal = jnp.where(better[..., None], fallback * side[..., None], normal)
    dist = distance - radius1 - radius2
    return dist, pos1 + normal * (radius1 + 0.5 * dist)[..., None], normal


def _across(unit: jax.Array, axis: jax.Array) -> jax.Array:
    """Unit vectors (..., 3), perpendicular to `axis` up to rounding errors, without their component along it."""
    part, _ = normalize(unit - dot(unit, axis)[..., None] * axis, unit, 0.5)
    return part


def _x_axis(like: jax.Array) -> jax.Array:
    return jnp.broadcast_to(const(np.array([1.0, 0.0, 0.0]), like), like.shape)
