"""From MJCF, URDF or a compiled model to `mujoco.MjModel`."""

from __future__ import annotations

import os

import mujoco

from simengine.errors import ModelError, UnknownModelError


def is_mjcf_text(source: str) -> bool:
    """Whether a string is MJCF, not a path."""
    return source.lstrip().startswith("<")


def compile_model(source: str | os.PathLike[str]) -> mujoco.MjModel:
    """Compile MJCF text, or a file of MJCF, URDF or a compiled model (`.mjb`).

    Raises:
        UnknownModelError: the path names no file.
        ModelError: MuJoCo could not compile the source.
    """
    text = os.fspath(source)
    is_text = isinstance(source, str) and is_mjcf_text(text)
    if not is_text and not os.path.isfile(text):
        raise UnknownModelError(f"no model file at {text!r}; give the path of an MJCF file")
    read = mujoco.MjModel.from_binary_path if text.endswith(".mjb") else mujoco.MjModel.from_xml_path
    try:
        return mujoco.MjModel.from_xml_string(text) if is_text else read(text)
    except ValueError as error:
        where = "the given MJCF text" if is_text else repr(text)
        reason = " ".join(str(error).split())
        raise ModelError(f"MuJoCo could not compile {where}: {reason}; correct the model") from error
