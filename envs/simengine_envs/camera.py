"""Which body the camera of a task follows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import mujoco


def followed_body(model: mujoco.MjModel, config: Mapping[str, Any] | None) -> int | None:
    """The body that the free camera follows: the robot, if it can leave the picture.

    Args:
        model: the model.
        config: a task's `default_camera_config`. Its "trackbodyid" decides, if it is there: a body, or none if it is
            not positive, since the world stands still.

    Returns:
        The number of the body. Without "trackbodyid" it is the first one that has actuators and a joint without end,
        free or sliding; None if there is none.
    """
    if config and "trackbodyid" in config:
        body = int(config["trackbodyid"])
        return body if body > 0 else None
    driven = {int(model.body_rootid[model.jnt_bodyid[joint]]) for joint in _driven_joints(model)}
    return next((body for body in sorted(driven) if _roams(model, body)), None)


def _driven_joints(model: mujoco.MjModel) -> list[int]:
    joint = int(mujoco.mjtTrn.mjTRN_JOINT), int(mujoco.mjtTrn.mjTRN_JOINTINPARENT)
    kinds = zip(model.actuator_trntype, model.actuator_trnid[:, 0], strict=True)
    return [int(number) for kind, number in kinds if kind in joint]


def _roams(model: mujoco.MjModel, body: int) -> bool:
    """Whether a body has a free joint, or a slide joint without limits."""
    first = int(model.body_jntadr[body])
    return any(
        model.jnt_type[joint] == int(mujoco.mjtJoint.mjJNT_FREE)
        or (model.jnt_type[joint] == int(mujoco.mjtJoint.mjJNT_SLIDE) and not model.jnt_limited[joint])
        for joint in range(first, first + int(model.body_jntnum[body]))
    )
