"""Gravity compensation as tables: which bodies have any, and where the forces on each joint go."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np

PASSIVE, ACTUATOR, LIMITED, NOWHERE = range(4)
"""Codes of `jnt_gravcomp`: to the passive forces, to the actuators' without and with a limit, and lost."""


def gravcomp_table(mj: mujoco.MjModel) -> dict[str, Any]:
    """`body_gravcomp` (nbody,), zero where it has no effect, and `jnt_gravcomp` (njnt,).

    MuJoCo computes it with the passive forces, and none of these where neither springs nor dampers act; what is meant
    for the actuators is lost in a model that has none, or whose actuators are all disabled.
    """
    bits = mujoco.mjtDisableBit
    disabled = int(mj.opt.disableflags)
    passive = int(bits.mjDSBL_SPRING) | int(bits.mjDSBL_DAMPER)
    acts = bool(mj.opt.gravity.any()) and not disabled & int(bits.mjDSBL_GRAVITY) and disabled & passive != passive
    actuated = mj.nu > 0 and not disabled & int(bits.mjDSBL_ACTUATION)
    to_actuators = np.where(mj.jnt_actfrclimited, LIMITED, ACTUATOR) if actuated else NOWHERE
    acts = bool(acts and mj.ngravcomp)  # bodies with a positive share; without any, negative ones do nothing either
    return {
        "body_gravcomp": mj.body_gravcomp if acts else np.zeros(mj.nbody),
        "jnt_gravcomp": np.where(mj.jnt_actgravcomp & acts, to_actuators, PASSIVE),
    }
