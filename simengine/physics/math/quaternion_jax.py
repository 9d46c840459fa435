"""Unit quaternions (w, x, y, z) on the last axis. As in MuJoCo, rotate(q, v) takes v from local to parent frame."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from simengine.physics.math.vector_jax import const, cross, dot, normalize, safe_sqrt


def mul(p: jax.Array, q: jax.Array) -> jax.Array:
    """Hamilton product p q, shape (..., 4): the rotation by q, then by p."""
    pw, px, py, pz = p[..., 0], p[..., 1], p[..., 2], p[..., 3]
    qw, qx, qy, qz = q[..., 0], q[..., 1], q[..., 2], q[..., 3]
    return jnp.stack(
        [
            pw * qw - px * qx - py * qy - pz * qz,
            pw * qx + px * qw + py * qz - pz * qy,
            pw * qy - px * qz + py * qw + pz * qx,
            pw * qz + px * qy - py * qx + pz * qw,
        ],
        axis=-1,
    )


def conjugate(q: jax.Array) -> jax.Array:
    """The inverse of unit quaternions q (..., 4)."""
    return jnp.concatenate([q[..., :1], -q[..., 1:]], axis=-1)


def rotate(q: jax.Array, v: jax.Array) -> jax.Array:
    """Rotate vectors v (..., 3) by unit quaternions q (..., 4): v + 2 w (u x v) + 2 u x (u x v)."""
    w, u = q[..., :1], q[..., 1:]
    t = 2.0 * cross(u, v)
    return v + w * t + cross(u, t)


def to_mat(q: jax.Array) -> jax.Array:
    """Rotation matrices of unit quaternions, row-major, shape (..., 9); columns are the local axes in the parent."""
    w, x, y, z = q[..., 0], q[..., 1], q[..., 2], q[..., 3]
    return jnp.stack(
        [
            w * w + x * x - y * y - z * z,
            2.0 * (x * y - w * z),
            2.0 * (x * z + w * y),
            2.0 * (x * y + w * z),
            w * w - x * x + y * y - z * z,
            2.0 * (y * z - w * x),
            2.0 * (x * z - w * y),
            2.0 * (y * z + w * x),
            w * w - x * x - y * y + z * z,
        ],
        axis=-1,
    )


def from_axis_angle(axis: jax.Array, angle: jax.Array) -> jax.Array:
    """Rotation by `angle` (...) [rad] about unit axes (..., 3)."""
    half = 0.5 * angle[..., None]
    return jnp.concatenate([jnp.cos(half), axis * jnp.sin(half)], axis=-1)


def renormalize(q: jax.Array) -> jax.Array:
    """q scaled to length 1; the identity where q is zero."""
    identity = jnp.broadcast_to(const(np.array([1.0, 0.0, 0.0, 0.0]), q), q.shape)
    return normalize(q, identity)[0]


def exp(rotation: jax.Array) -> jax.Array:
    """Quaternion of a rotation vector (..., 3) [rad]; smooth through zero.

    For small angles a, sin(a/2)/a is replaced by its Taylor series: the derivative of the norm a is not defined at
    zero.
    """
    square = dot(rotation, rotation)
    small = square < 1e-6
    angle = safe_sqrt(jnp.where(small, jnp.ones_like(square), square))
    series_sinc = 0.5 - square / 48.0 + square * square / 3840.0
    series_cos = 1.0 - square / 8.0 + square * square / 384.0
    sinc = jnp.where(small, series_sinc, jnp.sin(0.5 * angle) / angle)
    cosine = jnp.where(small, series_cos, jnp.cos(0.5 * angle))
    return jnp.concatenate([cosine[..., None], rotation * sinc[..., None]], axis=-1)


def log(q: jax.Array) -> jax.Array:
    """Rotation vector (..., 3) [rad] of unit quaternions, of length at most pi; smooth through zero."""
    q = jnp.where(q[..., :1] < 0, -q, q)
    w, u = q[..., 0], q[..., 1:]
    square = dot(u, u)
    small = square < 1e-6
    sine = safe_sqrt(jnp.where(small, jnp.ones_like(square), square))
    ratio = square / jnp.where(small, w * w, jnp.ones_like(w))
    series = (2.0 - ratio * (2.0 / 3.0 - 0.4 * ratio)) / jnp.where(small, w, jnp.ones_like(w))
    return u * jnp.where(small, series, 2.0 * jnp.arctan2(sine, w) / sine)[..., None]


def difference(start: jax.Array, end: jax.Array) -> jax.Array:
    """Rotation vector (..., 3) [rad] that takes the orientation `start` to `end`, in the frame of either."""
    return log(mul(conjugate(start), end))


def integrate(q: jax.Array, omega: jax.Array, dt: jax.Array | float) -> jax.Array:
    """Advance q (..., 4) by the local angular velocity omega (..., 3) [rad/s] held for dt [s]."""
    return renormalize(mul(q, exp(omega * dt)))


def shortest(rotation: jax.Array) -> jax.Array:
    """Rotation vector (..., 3) [rad] of the same rotation by at most half a turn."""
    square = dot(rotation, rotation)
    longer = square > np.pi**2
    angle = jnp.sqrt(jnp.where(longer, square, jnp.ones_like(square)))
    turns = jnp.where(longer, jnp.floor(angle / (2.0 * np.pi) + 0.5), jnp.zeros_like(square))
    return rotation * (1.0 - 2.0 * np.pi * turns / angle)[..., None]


def rotation_rate(rotation: jax.Array, omega: jax.Array) -> jax.Array:
    """Rate (..., 3) of the rotation vector u in q exp(u) that makes the local angular velocity omega (..., 3) [rad/s].

    The inverse of the exponential's differential: omega + 1/2 u x omega + c u x (u x omega) with
    c = (1 - a/2 cot a/2) / a^2, a = |u|. Source: A. Iserles et al., Lie-group methods, Acta Numerica 9 (2000), (2.44).
    """
    square = dot(rotation, rotation)
    small = square < 1e-4
    angle = safe_sqrt(jnp.where(small, jnp.ones_like(square), square))
    exact = (1.0 - 0.5 * angle / jnp.tan(0.5 * angle)) / (angle * angle)
    c = jnp.where(small, 1.0 / 12.0 + square / 720.0 + square * square / 30240.0, exact)
    once = cross(rotation, omega)
    return omega + 0.5 * once + c[..., None] * cross(rotation, once)
