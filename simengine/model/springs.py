"""Whether a model has springs or dampers that are not linear."""

from __future__ import annotations

import mujoco


def has_polynomials(mj: mujoco.MjModel) -> bool:
    """Whether the stiffness of some spring depends on its stretch, or the damping of some damper on its speed."""
    fields = (mj.jnt_stiffnesspoly, mj.dof_dampingpoly, mj.tendon_stiffnesspoly, mj.tendon_dampingpoly)
    return any(bool(field.any()) for field in fields)
