"""`Model`: what users see of a model."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np

from simengine.errors import did_you_mean
from simengine.model.model_table import ModelTable


class Model:
    """A model that the engine can simulate.

    Everything that `mujoco.MjModel` has is an attribute, under MuJoCo's name and in its shape: `nq`, `body_mass`,
    `geom_friction`, `opt.timestep`, `geom("floor")`. Arrays are read-only, in float64; worlds get parameters of their
    own by `Simulation.set_params`.

    Args:
        mj: the compiled model, or the table of one.

    Attributes:
        table: the model as the engine computes with it, for those who extend the engine.

    Raises:
        UnsupportedModelError: the model needs features the engine lacks; the message names every one.
    """

    def __init__(self, mj: mujoco.MjModel | ModelTable):
        self.table = mj if isinstance(mj, ModelTable) else ModelTable(mj)

    @property
    def mj(self) -> mujoco.MjModel:
        """The compiled `mujoco.MjModel`, which also renders and serves as oracle."""
        return self.table.mj

    @property
    def name(self) -> str:
        """The model's name, or "unnamed"."""
        return self.table.name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "table" not in self.__dict__:  # while it is copied or unpickled
            raise AttributeError(name)
        try:
            value = getattr(self.mj, name)
        except AttributeError:
            hint = did_you_mean(name, dir(self.mj))
            raise AttributeError(f"MuJoCo's model has no field {name!r}{hint}") from None
        if isinstance(value, np.ndarray):
            value = value.view()
            value.flags.writeable = False
        return value

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *(name for name in dir(self.mj) if not name.startswith("_"))})

    def __repr__(self) -> str:
        return f"Model({self.name!r}, nq={self.nq}, nv={self.nv}, nu={self.nu}, nbody={self.nbody})"


def table_of(model: Model | ModelTable) -> ModelTable:
    """The table of a model, or the table itself."""
    return model.table if isinstance(model, Model) else model
