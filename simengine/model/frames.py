"""Frames that MuJoCo replaces by another frame of their body.

MuJoCo's compiler marks inertial frames, geoms and sites whose frame equals that of the body, or of the body's inertia,
within a small tolerance (`sameframe`), and its kinematics then uses that frame instead. The table holds the frame that
is used, so that stages need no marks.
"""

from __future__ import annotations

import mujoco
import numpy as np

from simengine.model.codes import among

_SAME = mujoco.mjtSameFrame
_NO_TURN = np.array([1.0, 0.0, 0.0, 0.0])


def frame_table(mj: mujoco.MjModel) -> dict[str, np.ndarray]:
    """Poses of inertial frames, geoms and sites in their bodies, with MuJoCo's replacements applied."""
    everything = np.arange(mj.nbody)
    ipos, iquat = _folded(mj, mj.body_sameframe, everything, mj.body_ipos, mj.body_iquat)
    geom_pos, geom_quat = _folded(mj, mj.geom_sameframe, mj.geom_bodyid, mj.geom_pos, mj.geom_quat)
    site_pos, site_quat = _folded(mj, mj.site_sameframe, mj.site_bodyid, mj.site_pos, mj.site_quat)
    frames = {"body_ipos": ipos, "body_iquat": iquat}
    frames |= {"geom_pos": geom_pos, "geom_quat": geom_quat}
    return frames | {"site_pos": site_pos, "site_quat": site_quat}


def _folded(
    mj: mujoco.MjModel, same: np.ndarray, body: np.ndarray, pos: np.ndarray, quat: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Positions (n, 3) [m] and orientations (n, 4) in the bodies `body`, replaced as `same` (n,) says."""
    mark = np.asarray(same)[:, None]
    as_body, as_inertia = int(_SAME.mjSAMEFRAME_BODY), int(_SAME.mjSAMEFRAME_INERTIA)
    turned_as_body = among(mark, as_body, _SAME.mjSAMEFRAME_BODYROT)
    turned_as_inertia = among(mark, as_inertia, _SAME.mjSAMEFRAME_INERTIAROT)
    at = np.where(mark == as_body, 0.0, np.where(mark == as_inertia, mj.body_ipos[body], pos))
    turned = np.where(turned_as_body, _NO_TURN, np.where(turned_as_inertia, mj.body_iquat[body], quat))
    return at, turned
