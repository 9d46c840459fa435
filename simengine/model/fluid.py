"""Table fields of fluid forces: the boxes of the bodies, and the geoms that count as ellipsoids instead."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np


def fluid_table(mj: mujoco.MjModel) -> dict[str, Any]:
    """`opt_density` and `opt_viscosity`, zero where they have no effect, `body_box`, `body_fluid`, `geom_semiaxes`."""
    bits = mujoco.mjtDisableBit
    # MuJoCo computes no passive forces, fluid forces included, if springs and dampers are both disabled
    passive = int(bits.mjDSBL_SPRING) | int(bits.mjDSBL_DAMPER)
    acts = mj.opt.disableflags & passive != passive
    with_ellipsoids = np.zeros(mj.nbody, dtype=np.int32)
    with_ellipsoids[mj.geom_bodyid[mj.geom_fluid[:, 0] != 0]] = 1
    return {
        "opt_density": max(0.0, mj.opt.density) if acts else 0.0,
        "opt_viscosity": max(0.0, mj.opt.viscosity) if acts else 0.0,
        "body_box": box_sides(np, mj.body_mass, mj.body_inertia),
        "body_fluid": with_ellipsoids,
        "geom_semiaxes": _semiaxes(mj),
    }


def box_sides(xp: Any, mass: Any, inertia: Any) -> Any:
    """Sides (..., nbody, 3) of the homogeneous boxes with the bodies' mass and principal moments; zero without mass.

    Args: xp is NumPy or CuPy, mass (..., nbody) [kg], inertia (..., nbody, 3) [kg m^2].
    """
    heavy = mass >= mujoco.mjMINVAL
    squares = inertia.sum(axis=-1, keepdims=True) - 2 * inertia
    known = xp.where(heavy, mass, 1.0)[..., None]
    return xp.where(heavy[..., None], xp.sqrt(6 * xp.maximum(mujoco.mjMINVAL, squares) / known), 0.0)


def _semiaxes(mj: mujoco.MjModel) -> np.ndarray:
    """Half axes (ngeom, 3) of the ellipsoids: the sizes, completed for geoms with only radius and half length."""
    kind, axes = mj.geom_type[:, None], mj.geom_size.copy()
    radius, half = axes[:, :1], axes[:, 1:2]
    geom = mujoco.mjtGeom
    axes = np.where(kind == geom.mjGEOM_SPHERE, radius, axes)
    axes = np.where(kind == geom.mjGEOM_CAPSULE, np.hstack([radius, radius, radius + half]), axes)
    return np.where(kind == geom.mjGEOM_CYLINDER, np.hstack([radius, radius, half]), axes)
