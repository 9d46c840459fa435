"""Actuators in JAX: activation dynamics, gains and biases, for all actuators of a model at once.

Source: MuJoCo documentation, chapter "Computation", section "Actuation model"; for the curves of a muscle: chapter
"Modeling", section "Muscles". L is a muscle's length in units of its optimal length, and V its velocity in units of its
largest shortening velocity.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simengine.physics.math.vector_jax import MINVAL, const, present, tables

TRN_JOINT, TRN_JOINTINPARENT, TRN_SLIDERCRANK, TRN_TENDON, TRN_SITE, TRN_BODY = range(6)
"""actuator_trntype of MuJoCo."""

DYN_NONE, DYN_INTEGRATOR, DYN_FILTER, DYN_FILTEREXACT, DYN_MUSCLE = range(5)
"""actuator_dyntype of MuJoCo."""

FIXED, AFFINE, MUSCLE = range(3)
"""actuator_gaintype of MuJoCo, and actuator_biastype with "none" for "fixed"."""


def clamped(x: jax.Array, limited: Any, bounds: Any) -> jax.Array:
    """x (n,), clamped to bounds (n, 2) where limited (n,)."""
    limited = np.asarray(limited, bool)
    if not limited.any():
        return x
    xp, bounds = tables(bounds)
    low = xp.where(limited, bounds[:, 0], -np.inf)
    high = xp.where(limited, bounds[:, 1], np.inf)
    return jnp.clip(x, const(low, x), const(high, x))


# ----------------------------------------------------------------------------------------------- activation dynamics


def activation_rate(m: Any, ctrl: jax.Array, act: jax.Array) -> jax.Array:
    """act_dot (na,) from controls (nu,) within their ranges and activations (na,)."""
    u = np.asarray(m.act_actuatorid)
    kind, prm = np.asarray(m.actuator_dyntype)[u], np.asarray(m.actuator_dynprm)[u]
    ctrl = ctrl[u]
    rate = (_nearest_turn(m, u, ctrl, act) - act) / const(np.maximum(MINVAL, prm[:, 0]), act)
    rate = jnp.where(kind == DYN_INTEGRATOR, ctrl, rate)
    muscle = kind == DYN_MUSCLE
    return jnp.where(muscle, _muscle_rate(prm, ctrl, act), rate) if muscle.any() else rate


def _muscle_rate(prm: np.ndarray, ctrl: jax.Array, act: jax.Array) -> jax.Array:
    """Rates (n,) of muscle activations, which rise faster than they fall; prm (n, 3): two time constants, a width."""
    level = 0.5 + 1.5 * jnp.clip(act, 0.0, 1.0)
    rise = jnp.clip(ctrl, 0.0, 1.0) - act
    up, down = const(prm[:, 0], act) * level, const(prm[:, 1], act) / level
    sharp = prm[:, 2] < MINVAL
    x = jnp.clip(rise / const(np.where(sharp, 1.0, prm[:, 2]), act) + 0.5, 0.0, 1.0)
    smooth = x * x * x * (x * (6.0 * x - 15.0) + 10.0)
    share = jnp.where(sharp, (rise > 0).astype(act.dtype), smooth)
    return rise / jnp.maximum(down + (up - down) * share, MINVAL)


def next_activation(m: Any, act: jax.Array, act_dot: jax.Array) -> jax.Array:
    """Activations (na,) after a time step at rates act_dot (na,), clamped to their ranges."""
    u = np.asarray(m.act_actuatorid)
    h = float(m.opt_timestep)
    exact = np.asarray(m.actuator_dyntype)[u] == DYN_FILTEREXACT
    time = np.maximum(MINVAL, np.asarray(m.actuator_dynprm)[u, 0])
    step = np.where(exact, -time * np.expm1(-h / time), h)
    return clamped(
        act + const(step, act) * act_dot, np.asarray(m.actuator_actlimited)[u], np.asarray(m.actuator_actrange)[u]
    )


def advance_activation(m: Any, act: jax.Array, act_dot: jax.Array, length: jax.Array) -> jax.Array:
    """Activations (na,) at the end of a step; those of disabled actuators do not move.

    Those of position servos on spatial rotations are at most half a turn from the actuator's length, of lengths (nu,).
    """
    u = np.asarray(m.act_actuatorid)
    following = _nearest_turn(m, u, next_activation(m, act, act_dot), length[u])
    return jnp.where(np.asarray(m.actuator_disabled, bool)[u], act, following)


def actuator_input(m: Any, ctrl: jax.Array, act: jax.Array, act_dot: jax.Array) -> jax.Array:
    """What the gains multiply (nu,): controls, or activations, at the end of the step where `actearly` is set."""
    if not m.na:
        return ctrl
    u = np.asarray(m.act_actuatorid)
    early = np.asarray(m.actuator_actearly, bool)[u]
    return ctrl.at[u].set(jnp.where(early, next_activation(m, act, act_dot), act))


# --------------------------------------------------------------------------------------------------- gains and biases


def actuator_forces(m: Any, signal: jax.Array, length: jax.Array, velocity: jax.Array) -> jax.Array:
    """Forces (nu,) before clamping, gain * signal + bias, for signals, lengths and velocities (nu,).

    `implicit_jax` takes their derivative with respect to the velocity by `jax.jvp`.
    """
    length = _nearest_turn(m, np.arange(m.nu), length, signal)
    gain, bias = const(m.actuator_gainprm, length), const(m.actuator_biasprm, length)
    gaintype, biastype = np.asarray(m.actuator_gaintype), np.asarray(m.actuator_biastype)
    factor = jnp.where(gaintype == AFFINE, gain[:, 1] * length + gain[:, 2] * velocity, 0.0)
    factor = gain[:, 0] + factor
    added = bias[:, 0] + bias[:, 1] * length + bias[:, 2] * velocity
    added = jnp.where(biastype == AFFINE, added, 0.0)
    muscles = np.flatnonzero(gaintype == MUSCLE)
    if muscles.size:
        factor = factor.at[muscles].set(_muscle_gain(m, muscles, length[muscles], velocity[muscles]))
    muscles = np.flatnonzero(biastype == MUSCLE)
    if muscles.size:
        added = added.at[muscles].set(_muscle_bias(m, muscles, length[muscles]))
    return factor * signal + added


def _nearest_turn(m: Any, u: np.ndarray, value: jax.Array, to: jax.Array) -> jax.Array:
    """For position servos u (n,) on spatial rotations: full turns away from values (n,), what is nearest to `to`.

    Values of other actuators stay.
    """
    if not present(m.actuator_period).any():
        return value
    xp, period = tables(m.actuator_period)
    period = period[..., u]
    turning = period > 0
    period = const(xp.where(turning, period, 1.0), value)
    turns = jnp.floor((to - value) / period + 0.5)
    return jnp.where(turning, value + period * jax.lax.stop_gradient(turns), value)


def _muscle_length(m: Any, u: np.ndarray, prm: Any, length: jax.Array) -> tuple[jax.Array, Any]:
    """Normalised lengths L (n,) and optimal lengths (n,) [m]."""
    xp, prm, bounds = tables(prm, m.actuator_lengthrange[u])
    low, high = bounds.T
    unit = (high - low) / xp.maximum(MINVAL, prm[:, 1] - prm[:, 0])
    return const(prm[:, 0], length) + (length - const(low, length)) / const(xp.maximum(MINVAL, unit), length), unit


def _muscle_gain(m: Any, u: np.ndarray, length: jax.Array, velocity: jax.Array) -> jax.Array:
    xp, prm = tables(m.actuator_gainprm[u])
    at, unit = _muscle_length(m, u, prm, length)
    speed = velocity / const(xp.maximum(MINVAL, unit * prm[:, 6]), velocity)
    return -const(prm[:, 2], at) * _bump(at, prm[:, 4], prm[:, 5]) * _by_velocity(speed, prm[:, 8])


def _bump(at: jax.Array, lmin: Any, lmax: Any) -> jax.Array:
    """Force-length curve: a bump of four parabolas between lmin and lmax, with its maximum at L = 1."""
    side = jnp.where(at <= 1, const(lmin, at), const(lmax, at))
    half = jnp.maximum(0.5 * jnp.abs(1.0 - side), MINVAL)
    outer, inner = (at - side) / half, (1.0 - at) / half
    inside = (at >= const(lmin, at)) & (at <= const(lmax, at))
    value = jnp.where(jnp.abs(at - side) <= half, 0.5 * outer * outer, 1.0 - 0.5 * inner * inner)
    return jnp.where(inside, value, 0.0)


def _by_velocity(speed: jax.Array, fvmax: Any) -> jax.Array:
    """Force-velocity curve: parabolas from V = -1 through (0, 1) to a plateau of fvmax."""
    rise = const(fvmax - 1.0, speed)
    left = (rise - speed) / jnp.maximum(rise, MINVAL)
    lengthening = jnp.where(speed <= rise, rise + 1.0 - left * (rise - speed), rise + 1.0)
    return jnp.where(speed <= 0, jnp.where(speed <= -1, 0.0, (speed + 1.0) ** 2), lengthening)


def _muscle_bias(m: Any, u: np.ndarray, length: jax.Array) -> jax.Array:
    """Passive force of stretched muscles: a parabola that continues as a line."""
    xp, prm = tables(m.actuator_biasprm[u])
    at, _ = _muscle_length(m, u, prm, length)
    x = jnp.maximum(at - 1.0, 0.0) / const(xp.maximum(MINVAL, 0.5 * (prm[:, 5] - 1.0)), at)
    return -const(prm[:, 2] * prm[:, 7], at) * jnp.where(x <= 1, 0.5 * x * x, x - 0.5)
