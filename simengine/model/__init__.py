"""Models: loading through MuJoCo, refusal of unsupported features, and the table that the stages read.

The files are:

    model                              `load_model` and `Model`
    support                            every feature of a model that the engine lacks
    table                              the fields of the model table
    pair_types                         the types of geom pairs
    model_table                        `ModelTable`: these fields of one model
    build, and a file for each topic   how the fields follow from MuJoCo's model
    blob                               the table packed into arrays for the kernels
    params                             parameters that differ between worlds
"""

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
