"""The rows of MuJoCo as the engine has them in float32, where edges of pyramids with hardly any friction are no harder
than those of a friction of 0.01.

Their sum is MuJoCo's normal force. How they share it is not, since their friction is less than a part of 0.01 of it.
"""

from __future__ import annotations

import mujoco
import numpy as np

from simengine.model.model import Model
from simengine.model.rows import LEAST_SHARE

_EDGE = int(mujoco.mjtConstraint.mjCNSTR_CONTACT_PYRAMIDAL)


def soften(mj: mujoco.MjModel, data: mujoco.MjData, fields: dict[str, np.ndarray]) -> None:
    """Give `efc_D` the value that edges have in float32, and nan to the forces of those whose value that changes.

    Args:
        mj: the model.
        data: evaluated up to the rows.
        fields: MuJoCo's values by the names of `FORWARD`.
    """
    edges = np.flatnonzero(np.asarray(data.efc_type) == _EDGE)
    share = _shares(mj, data.contact.friction[data.efc_id[edges], 0])
    soft = share < LEAST_SHARE
    fields["efc_D"][edges[soft]] *= share[soft] / LEAST_SHARE
    fields["efc_force"][edges[soft]] = np.nan


def can_soften(model: Model) -> bool:
    """Whether some pair of geoms may have such edges."""
    arrays = model.table.arrays
    friction = np.asarray(arrays["cand_friction"]).reshape(-1, 5)[np.asarray(arrays["cand_condim"]) > 1, 0]
    pyramids = model.mj.opt.cone == mujoco.mjtCone.mjCONE_PYRAMIDAL
    return bool(pyramids and (_shares(model.mj, friction) < LEAST_SHARE).any())


def _shares(mj: mujoco.MjModel, friction: np.ndarray) -> np.ndarray:
    """Regularisation of edges over that of a contact without friction, by their friction."""
    return 2 * friction**2 / max(mujoco.mjMINVAL, mj.opt.impratio)
