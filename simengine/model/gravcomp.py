"""Table fields of gravity compensation: which bodies have it, and to which force of each joint it is added."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np

PASSIVE, ACTUATOR, LIMITED, NOWHERE = range(4)
"""Codes of `jnt_gravcomp`: added to the passive force, to the actuator force without or with a limit, or dropped."""


def gravcomp_table(mj: mujoco.MjModel) -> dict[str, Any]:
    """`body_gravcomp` (nbody,), zero where it has no effect, and `jnt_gravcomp` (njnt,).

    MuJoCo computes it with the passive forces, and computes none of these if springs and dampers are both disabled. The
    part for the actuators is dropped in a model without actuators, or with all of them disabled.
    """
    bits = mujoco.mjtDisableBit
    disabled = int(mj.opt.disableflags)
    passive = int(bits.mjDSBL_SPRING) | int(bits.mjDSBL_DAMPER)
    # whether there is gravity does not count: worlds may have some where the model has none
    acts = not disabled & int(bits.mjDSBL_GRAVITY) and disabled & passive != passive
    actuated = mj.nu > 0 and not disabled & int(bits.mjDSBL_ACTUATION)
    to_actuators = np.where(mj.jnt_actfrclimited, LIMITED, ACTUATOR) if actuated else NOWHERE
    acts = bool(acts and mj.ngravcomp)  # ngravcomp counts positive values; without any, negative ones have no effect
    return {
        "body_gravcomp": mj.body_gravcomp if acts else np.zeros(mj.nbody),
        "jnt_gravcomp": np.where(mj.jnt_actgravcomp & acts, to_actuators, PASSIVE),
    }
