"""MuJoCo's forward dynamics where what an engine holds between its stages is rounded.

However exact its formulas are, an engine of some precision rounds the poses and velocities of bodies, the inertia
matrix, the rows of constraints and the forces on dofs as it stores them, poses and velocities at every joint anew.
Where shapes almost coincide, where the inertia matrix is nearly singular, or where large forces balance, that alone
changes what follows by far more than rounding the state does.
"""

from __future__ import annotations

from typing import NamedTuple

import mujoco
import numpy as np

_OF_BODIES = ("xpos", "xquat", "xmat", "xipos", "ximat")
_OF_JOINTS, _OF_GEOMS, _OF_SITES = ("xanchor", "xaxis"), ("geom_xpos", "geom_xmat"), ("site_xpos", "site_xmat")


class Terms(NamedTuple):
    """Sums of the magnitudes of the terms that MuJoCo adds up, at a solution.

    Attributes:
        force: of the forces on each dof, (nv,) [N, N m].
        residual: of the acceleration that each row asks for and those that it gets, (nefc,).
    """

    force: np.ndarray
    residual: np.ndarray

    @staticmethod
    def of(data: mujoco.MjData, jacobian: np.ndarray) -> Terms:
        """Of the solution in `data`, given efc_J in full, (nefc, nv)."""
        smooth = sum(np.abs(getattr(data, f"qfrc_{name}")) for name in ("bias", "passive", "actuator", "applied"))
        force = smooth + np.abs(data.efc_force) @ np.abs(jacobian)
        return Terms(force, np.abs(data.efc_aref) + np.abs(jacobian) @ np.abs(data.qacc))


class Unit:
    """Moves numbers up or down by units in the last place of a precision.

    Args:
        dtype: "float32" or "float64".
        rng: decides which way.
        number: by how many units.
    """

    def __init__(self, dtype: str, rng: np.random.Generator, number: float = 1.0):
        self._dtype = dtype
        self._rng = rng
        self._number = number

    def moved(self, values: np.ndarray, size: np.ndarray | None = None, often: np.ndarray | None = None) -> np.ndarray:
        """The numbers, moved by units of `size`, or of themselves, and each of a number of rows as far as it gets when
        moved `often` times."""
        unit = np.spacing(np.abs(values if size is None else size).astype(self._dtype)).astype(np.float64)
        way = self._rng.choice((-self._number, self._number), size=unit.shape)
        return np.asarray(values + (unit * way if often is None else unit * way * np.sqrt(often)[:, None]))


def forward_with_rounded(mj: mujoco.MjModel, data: mujoco.MjData, terms: Terms, unit: Unit) -> bool:
    """As `mj_forward` on the state in `data`, but with poses, velocities, inertia matrix, rows and forces moved by
    units.

    Args:
        mj: the model.
        data: holds the state; changed.
        terms: of MuJoCo's own solution in this state.
        unit: moves what is held.

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
            held[:] = unit.moved(held, often=depth[body])
    mujoco.mj_comPos(mj, data)
    mujoco.mj_camlight(mj, data)
    mujoco.mj_tendon(mj, data)
    mujoco.mj_makeM(mj, data)
    data.M[:] = unit.moved(data.M)
    mujoco.mj_factorM(mj, data)
    mujoco.mj_collision(mj, data)
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
    mujoco.mj_sensorAcc(mj, data)
    return True


def _depth(mj: mujoco.MjModel) -> np.ndarray:
    """Number of bodies from each one up to the world, which does not count, (nbody,)."""
    depth = np.zeros(mj.nbody)
    for body in range(1, mj.nbody):
        depth[body] = depth[mj.body_parentid[body]] + 1
    return depth
