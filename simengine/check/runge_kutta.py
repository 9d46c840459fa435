"""MuJoCo's step of Runge-Kutta, evaluation by evaluation."""

from __future__ import annotations

import mujoco
import numpy as np

_REACH = (0.5, 0.5, 1.0)  # the evaluations after the first, as fractions of the step
_WEIGHT = (1 / 6, 1 / 3, 1 / 3, 1 / 6)
_SERIES = 1e-4  # squared angle below which the coefficient of the rotation rate is that of its series


class RungeKutta:
    """A step of the classical method. The caller evaluates the dynamics, and says what came out.

    Args:
        mj: the model.
        qpos, qvel, act: the state before the step, (nq,), (nv,), (na,).

    Attributes:
        qpos, qvel, act: the state in which the dynamics are to be evaluated; after four evaluations, the state after
            the step. Activations are neither clamped nor integrated exactly.
    """

    def __init__(self, mj: mujoco.MjModel, qpos: np.ndarray, qvel: np.ndarray, act: np.ndarray):
        self.qpos, self.qvel, self.act = np.array(qpos), np.array(qvel), np.array(act)
        self._mj, self._start, self._taken = mj, (self.qpos, self.qvel, self.act), 0
        self._sums = tuple(np.zeros(len(values)) for values in (qvel, qvel, act))
        kinds = np.asarray(mj.jnt_type)
        free, ball = (kinds == kind for kind in (mujoco.mjtJoint.mjJNT_FREE, mujoco.mjtJoint.mjJNT_BALL))
        self._turning = [
            (int(mj.jnt_qposadr[j]) + 3 * int(free[j]), int(mj.jnt_dofadr[j]) + 3 * int(free[j]))
            for j in np.flatnonzero(free | ball)
        ]

    def advance(self, qacc: np.ndarray, act_dot: np.ndarray) -> None:
        """Go on to the next evaluation, or to the end, given qacc (nv,) and act_dot (na,) in this one."""
        slopes = (self._rate(), qacc, act_dot)
        for total, slope in zip(self._sums, slopes, strict=True):
            total += _WEIGHT[self._taken] * slope
        ends = self._taken == len(_REACH)
        dt = self._mj.opt.timestep * (1.0 if ends else _REACH[self._taken])
        rate, acceleration, activation = self._sums if ends else slopes
        qpos, qvel, act = self._start
        self.qpos, self.qvel, self.act = qpos.copy(), qvel + dt * acceleration, act + dt * activation
        mujoco.mj_integratePos(self._mj, self.qpos, np.array(rate), dt)
        self._taken += 1

    def _rate(self) -> np.ndarray:
        """Rate (nv,) of the displacement from the start: the velocity itself, except for orientations."""
        rate, turned = self.qvel.copy(), np.zeros(3)
        for q, v in self._turning:
            mujoco.mju_subQuat(turned, _unit(self.qpos[q : q + 4]), _unit(self._start[0][q : q + 4]))
            rate[v : v + 3] = _rotation_rate(turned, self.qvel[v : v + 3])
        return rate


def _unit(quat: np.ndarray) -> np.ndarray:
    normalized = np.array(quat)
    mujoco.mju_normalize4(normalized)
    return normalized


def _rotation_rate(turned: np.ndarray, omega: np.ndarray) -> np.ndarray:
    """Rate of the rotation vector u in q exp(u) that makes a local angular velocity: the inverse of the exponential's
    differential, omega + u x omega / 2 + c u x (u x omega) with c = (1 - a/2 cot a/2) / a^2, a = |u|."""
    square = float(turned @ turned)
    angle = np.sqrt(square)
    c = 1 / 12 + square / 720 if square < _SERIES else (1 - angle / 2 / np.tan(angle / 2)) / square
    once = np.cross(turned, omega)
    return np.asarray(omega + once / 2 + c * np.cross(turned, once))
