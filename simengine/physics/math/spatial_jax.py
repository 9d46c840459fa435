"""Spatial (6-D) vectors, rotation first, and rigid-body inertias as ten numbers.

All are expressed in the world's orientation about one common point, the centre of mass of the kinematic tree, which
is MuJoCo's "com-based" frame:

    motion   (angular velocity, linear velocity of the body point at the com)
    force    (torque about the com, force)
    inertia  (Ixx, Iyy, Izz, Ixy, Ixz, Iyz, m dx, m dy, m dz, m), d from the com to the body's centre

Source: R. Featherstone, Rigid Body Dynamics Algorithms (2008), chapter 2.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from simengine.physics.math.vector_jax import cross


def motion_cross(v: jax.Array, m: jax.Array) -> jax.Array:
    """Rate of a motion vector m fixed in a frame that moves with velocity v: (w x mw, w x mv + v x mw)."""
    w, lin = v[..., :3], v[..., 3:]
    return jnp.concatenate([cross(w, m[..., :3]), cross(w, m[..., 3:]) + cross(lin, m[..., :3])], axis=-1)


def inertia(mass: jax.Array, moments: jax.Array, axes: jax.Array, offset: jax.Array) -> jax.Array:
    """Spatial inertias (..., 10) about a point; `offset` leads from it to the bodies' centres of mass.

    Args: mass (...) [kg]; moments (..., 3) about the principal axes [kg m^2]; axes (..., 9) those axes as the columns
    of a row-major matrix; offset (..., 3) [m].
    """
    rows = axes.reshape((*axes.shape[:-1], 3, 3))
    x, y, z = offset[..., 0], offset[..., 1], offset[..., 2]
    first, second, third = rows[..., 0, :], rows[..., 1, :], rows[..., 2, :]

    def turned(a: jax.Array, b: jax.Array) -> jax.Array:
        return jnp.sum(a * moments * b, axis=-1)

    return jnp.stack(
        [
            turned(first, first) + mass * (y * y + z * z),
            turned(second, second) + mass * (x * x + z * z),
            turned(third, third) + mass * (x * x + y * y),
            turned(first, second) - mass * x * y,
            turned(first, third) - mass * x * z,
            turned(second, third) - mass * y * z,
            mass * x,
            mass * y,
            mass * z,
            mass,
        ],
        axis=-1,
    )


def inertia_mul(i: jax.Array, v: jax.Array) -> jax.Array:
    """Momentum of inertia i (..., 10) moving with v (..., 6): (I w + h x v, m v - h x w), h = m d."""
    w, lin, h = v[..., :3], v[..., 3:], i[..., 6:9]
    return jnp.concatenate([_turned(i, w) + cross(h, lin), i[..., 9:] * lin - cross(h, w)], axis=-1)


def inertial_force(i: jax.Array, v: jax.Array, a: jax.Array) -> jax.Array:
    """Force (..., 6) on bodies of inertia i (..., 10), velocity v and acceleration a (..., 6): I a + v x I v.

    It is computed from the acceleration of the body point at the com, a + w x v. The product of the velocity and its
    own momentum is zero, and does not occur: its rounding would grow with the square of the speed.
    """
    w = v[..., :3]
    point = jnp.concatenate([a[..., :3], a[..., 3:] + cross(w, v[..., 3:])], axis=-1)
    centrifugal = jnp.concatenate([cross(w, _turned(i, w)), cross(w, cross(w, i[..., 6:9]))], axis=-1)
    return inertia_mul(i, point) + centrifugal


def _turned(i: jax.Array, w: jax.Array) -> jax.Array:
    """Moments of inertia (..., 10) times angular velocities (..., 3)."""
    xx, yy, zz, xy, xz, yz = (i[..., k] for k in range(6))
    wx, wy, wz = w[..., 0], w[..., 1], w[..., 2]
    return jnp.stack([xx * wx + xy * wy + xz * wz, xy * wx + yy * wy + yz * wz, xz * wx + yz * wy + zz * wz], axis=-1)


def wrench_about(point: jax.Array, at: jax.Array, force: jax.Array, torque: jax.Array | None = None) -> jax.Array:
    """Force vector (..., 6) about `point` of a force (..., 3) [N] at `at` (..., 3) [m], and a torque (..., 3) [N m]."""
    moment = cross(at - point, force)
    return jnp.concatenate([moment if torque is None else moment + torque, force], axis=-1)
