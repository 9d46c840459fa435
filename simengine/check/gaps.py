"""MuJoCo with boxes and spheres that reach across gaps, where the flag `override` is on.

Contacts between the margin and margin plus gap are listed and exert no force. With `override`, the boxes and spheres by
which MuJoCo skips pairs of geoms lack the gap, so it lists only some of these contacts. An adhesion actuator shares its
force among all that are listed. The engine lists all, and so does MuJoCo if its boxes and spheres are as large.
"""

from __future__ import annotations

from copy import copy

import mujoco
import numpy as np

_MOST = 1e12  # [m] beyond which nothing is that is compared


def with_whole_gaps(mj: mujoco.MjModel) -> mujoco.MjModel:
    """The model in which no contact in a gap is skipped, itself if it skips none."""
    overrides = mj.opt.enableflags & int(mujoco.mjtEnableBit.mjENBL_OVERRIDE)
    widest = max(2 * mj.geom_gap.max(initial=0.0), mj.pair_gap.max(initial=0.0))
    if not overrides or widest <= 0:
        return mj
    widest, whole = min(float(widest), _MOST), copy(mj)
    whole.geom_rbound[np.asarray(mj.geom_rbound) > 0] += widest  # planes have none
    whole.geom_aabb[:, 3:] += widest
    for first, number in zip(mj.body_bvhadr.tolist(), mj.body_bvhnum.tolist(), strict=True):
        whole.bvh_aabb[first : first + number, 3:] += widest
    return whole
