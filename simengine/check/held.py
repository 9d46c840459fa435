"""MuJoCo's forward dynamics, with the values rounded that an engine stores between its stages.

An engine of a given precision rounds the poses and velocities of bodies, their inertia about the com of their tree,
the inertia matrix, the constraint rows and the forces on dofs when it stores them; poses and velocities are rounded at
every joint of a chain. Where shapes almost coincide, the inertia matrix is nearly singular, a com is far from a body,
or large forces balance, this alone changes the results far more than rounding the state does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import mujoco
import numpy as np

_OF_BODIES = ("xpos", "xquat", "xmat", "xipos", "ximat")
_OF_JOINTS, _OF_GEOMS, _OF_SITES = ("xanchor", "xaxis"), ("geom_xpos", "geom_xmat"), ("site_xpos", "site_xmat")
_OF_TURNS = ("xquat", "xmat", "ximat", "xaxis", "geom_xmat", "site_xmat")
"""Entries of rotations and axes are sums of products of numbers below one, so a small one is rounded as those are."""


class Terms(NamedTuple):
    """Sums of the magnitudes of the terms that MuJoCo adds up, at a solution.

    Attributes:
        force: sum for the forces on each dof, (nv,) [N, N m].
        residual: sum for the residual of each row: its reference acceleration and J qacc, (nefc,).
    """

    force: np.ndarray
    residual: np.ndarray

    @staticmethod
    def of(data: mujoco.MjData, jacobian: np.ndarray) -> Terms:
        """The sums at the solution in `data`, given the dense efc_J (nefc, nv)."""
        smooth = sum(np.abs(getattr(data, f"qfrc_{name}")) for name in ("bias", "passive", "actuator", "applied"))
        force = smooth + np.abs(data.efc_force) @ np.abs(jacobian)
        return Terms(force, np.abs(data.efc_aref) + np.abs(jacobian) @ np.abs(data.qacc))


class Unit:
    """Moves numbers up or down, at random, by units in the last place of a precision.

    Args:
        dtype: "float32" or "float64".
        rng: decides the direction.
        number: number of units.
        parts: whether a number moves by any part of them. Whole units leave the difference of two large numbers as it
            is, or move it by two units.
    """

    def __init__(self, dtype: str, rng: np.random.Generator, number: float = 1.0, *, parts: bool = False):
        self._dtype = dtype
        self._rng = rng
        self._number = number
        self._parts = parts

    def moved(self, values: np.ndarray, size: np.ndarray | None = None, often: np.ndarray | None = None) -> np.ndarray:
        """The numbers, moved by units of `size`, or of their own size; each row is moved `often` times, if given."""
        unit = np.spacing(np.abs(values if size is None else size).astype(self._dtype)).astype(np.float64)
        ends = (-self._number, self._number)
        way = self._rng.uniform(*ends, unit.shape) if self._parts else self._rng.choice(ends, size=unit.shape)
        return np.asarray(values + (unit * way if often is None else unit * way * np.sqrt(often)[:, None]))


def forward_with_rounded(
    mj: mujoco.MjModel,
    data: mujoco.MjData,
    terms: Terms,
    unit: Unit,
    sort: Callable[[mujoco.MjData], None] | None = None,
) -> bool:
    """`mj_forward` on the state in `data`, with poses, velocities, inertia, rows and forces moved by units.

    Args:
        mj: the model.
        data: holds the state; changed.
        terms: sums at MuJoCo's own solution in this state.
        unit: moves the stored values.
        sort: gives the contacts in the data another order, if any.

    Returns:
        whether there are as many rows as at that solution; if not, `data` is evaluated up to the rows only.
    """
    depth = _depth(mj)
    mujoco.mj_kinematics(mj, data)
    for names, body in (
        (_OF_BODIES, np.arange(mj.nbody)),
        (_OF_JOINTS, mj.jnt_bodyid),
        (_OF_GEOMS, mj.geom_bodyid),
        (_OF_SITES, mj.site_bodyid),
    ):
        for name in names:
            held = getattr(data, name)
            size = np.maximum(np.abs(held), 0.5) if name in _OF_TURNS else None
            held[:] = unit.moved(held, size, often=depth[body])
    mujoco.mj_comPos(mj, data)
    data.cinert[:] = unit.moved(data.cinert)
    mujoco.mj_camlight(mj, data)
    mujoco.mj_tendon(mj, data)
    mujoco.mj_makeM(mj, data)
    data.M[:] = unit.moved(data.M)
    mujoco.mj_factorM(mj, data)
    mujoco.mj_collision(mj, data)
    if sort is not None:
        sort(data)
    mujoco.mj_makeConstraint(mj, data)
    if data.nefc != len(terms.residual):
        return False
    mujoco.mj_island(mj, data)
    mujoco.mj_transmission(mj, data)
    mujoco.mj_projectConstraint(mj, data)
    mujoco.mj_sensorPos(mj, data)
    mujoco.mj_fwdVelocity(mj, data)
    data.cvel[:] = unit.moved(data.cvel, often=depth)
    data.efc_aref[:] = unit.moved(data.efc_aref, terms.residual)
    mujoco.mj_sensorVel(mj, data)
    mujoco.mj_fwdActuation(mj, data)
    data.qfrc_applied[:] = unit.moved(data.qfrc_applied, terms.force)
    mujoco.mj_fwdAcceleration(mj, data)
    mujoco.mj_fwdConstraint(mj, data)
    _move_forces(mj, data, unit.moved(data.qfrc_constraint, terms.force))
    mujoco.mj_sensorAcc(mj, data)
    return True


def _move_forces(mj: mujoco.MjModel, data: mujoco.MjData, forces: np.ndarray) -> None:
    """Replace the generalised forces (nv,) of a solution. PGS and noslip make accelerations of such forces: where large
    ones balance, rounding these alone moves the accelerations, while other solvers make forces of accelerations."""
    if data.nefc and (mj.opt.solver == mujoco.mjtSolver.mjSOL_PGS or mj.opt.noslip_iterations > 0):
        added = np.zeros((1, mj.nv))
        mujoco.mj_solveM(mj, data, added, (forces - data.qfrc_constraint)[None])
        data.qacc += added[0]
    data.qfrc_constraint[:] = forces


def _depth(mj: mujoco.MjModel) -> np.ndarray:
    """Depth of each body in its tree, (nbody,): 0 for the world body."""
    depth = np.zeros(mj.nbody)
    for body in range(1, mj.nbody):
        depth[body] = depth[mj.body_parentid[body]] + 1
    return depth
