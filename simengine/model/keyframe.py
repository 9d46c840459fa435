"""Keyframes: named states of a model, as fields of the state table."""

from __future__ import annotations

import mujoco
import numpy as np

from simengine.errors import did_you_mean
from simengine.model.model_table import ModelTable

_SOURCE = {
    "qpos": "key_qpos",
    "qvel": "key_qvel",
    "act": "key_act",
    "ctrl": "key_ctrl",
    "mocap_pos": "key_mpos",
    "mocap_quat": "key_mquat",
}


def keyframe_state(model: ModelTable, keyframe: int | str) -> dict[str, np.ndarray]:
    """State fields that a keyframe sets, as mj_resetDataKeyframe does; its time is rounded to whole steps.

    Args:
        model: the model.
        keyframe: its name or number.

    Returns:
        values for one world by field; nstep holds the time.

    Raises:
        ValueError: the model has no such keyframe.
    """
    mj = model.mj
    number = _number(model, keyframe)
    state = {name: np.array(getattr(mj, key)[number]) for name, key in _SOURCE.items()}
    state["mocap_pos"], state["mocap_quat"] = state["mocap_pos"].reshape(-1, 3), state["mocap_quat"].reshape(-1, 4)
    state["nstep"] = np.array(round(float(mj.key_time[number]) / mj.opt.timestep))
    return state


def _number(model: ModelTable, keyframe: int | str) -> int:
    mj = model.mj
    names = [mujoco.mj_id2name(mj, mujoco.mjtObj.mjOBJ_KEY, i) or "" for i in range(mj.nkey)]
    if isinstance(keyframe, str) and keyframe and keyframe in names:
        return names.index(keyframe)
    is_number = isinstance(keyframe, (int, np.integer)) and not isinstance(keyframe, bool)
    if is_number and 0 <= int(keyframe) < mj.nkey:
        return int(keyframe)
    known = ", ".join(repr(name) for name in names if name)
    offer = f"numbers 0 to {mj.nkey - 1}{f' and names {known}' if known else ''}" if mj.nkey else "none at all"
    hint = did_you_mean(keyframe, filter(None, names))
    raise ValueError(f"model {model.name!r} has no keyframe {keyframe!r}{hint}; it has {offer}")
