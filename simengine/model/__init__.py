"""Models: loading through MuJoCo, the support gate, and the table the stages read."""

from __future__ import annotations

import os

import mujoco

from simengine.model.compiling import compile_model
from simengine.model.model import Model
from simengine.model.model_table import ModelTable

__all__ = ["Model", "ModelTable", "load_table"]


def load_table(source: str | os.PathLike[str] | mujoco.MjModel) -> ModelTable:
    """The table of a model, from a file, MJCF text or a compiled model; raises as `simengine.load_model` does."""
    return ModelTable(source if isinstance(source, mujoco.MjModel) else compile_model(source))
