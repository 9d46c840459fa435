"""Inverse weights of worlds with masses of their own, as a custom call: what MuJoCo's mj_setConst computes from masses.

Array arithmetic would invert the inertia of every world wherever a world may get new masses, in some fifty kernels on a
GPU. The call works on the worlds of a mask.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import mujoco
import numpy as np

from simengine.model.model_table import ModelTable
from simengine.model.params import MASSES, WorldParameters
from simengine.xla.calls import number_of

WEIGHTS = ("body_invweight0", "dof_invweight0", "tendon_invweight0", "stat_meaninertia")
"""Fields of the model table that the call gives."""

_POINTERS = (
    *("linear", "angular", "turned", "xmat", "M", "tendons", "slides", "dof_body", "mean_of"),
    *("mass", "inertia", "armature", "ipos", "body", "dof", "tendon", "mean", "chosen", "num_chosen", "scratch"),
)


class Work(ctypes.Structure):
    """What the kernel reads; see `invweights.cu`."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in _POINTERS),
        ("room", ctypes.c_int64),
        *((name, ctypes.c_int32) for name in ("nbody", "nv", "ntendon", "unused")),
    )


@dataclass(frozen=True, eq=False)
class WeightsCall:
    """A custom call that computes the inverse weights of n worlds.

    Attributes:
        model: the model.
        dtype: "float32" or "float64".
        num_worlds: number of worlds.
    """

    model: ModelTable
    dtype: str
    num_worlds: int
    keep: tuple[str, ...] = ()
    chooses: bool = True

    @property
    def inputs(self) -> tuple[str, ...]:
        """Parameters that the call takes, before a mask of the worlds to work on, (num_worlds,) int32."""
        return self._present(MASSES)

    @property
    def outputs(self) -> tuple[str, ...]:
        """Fields that the call gives. In worlds outside the mask they are whatever they were before."""
        return self._present(WEIGHTS)

    def _present(self, names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(name for name in names if 0 not in self.entry(name)[0])

    def entry(self, name: str) -> tuple[tuple[int, ...], str]:
        """Shape and type of one world's entry of a parameter or field."""
        mj = self.model.mj
        shapes = {"body_invweight0": (mj.nbody, 2), "dof_invweight0": (mj.nv,)}
        shapes |= {"tendon_invweight0": (mj.ntendon,), "stat_meaninertia": ()}
        return shapes[name] if name in shapes else np.shape(getattr(mj, name)), self.dtype

    @cached_property
    def constants(self) -> dict[str, np.ndarray]:
        """The model at qpos0, by the names of `invweights.cu`."""
        mj, rest = self.model.mj, WorldParameters(self.model).rest
        found = {name: getattr(rest, name).astype(np.float64) for name in _POINTERS[:6]}
        return found | {
            "slides": (mj.body_simple == 2).astype(np.int32),
            "dof_body": mj.dof_bodyid.astype(np.int32),
            "mean_of": means(mj),
        }

    @property
    def room(self) -> int:
        """Numbers of scratch that work on a world takes: a factor, rows, and their weights."""
        mj = self.model.mj
        rows = 6 * mj.nbody + mj.ntendon + mj.nv
        return int(mj.nv * mj.nv + mj.nv * rows + rows)

    @cached_property
    def number(self) -> int:
        """A number that identifies the call; see `Call.number`."""
        return number_of(self.model, self.dtype, "inverse weights", self.num_worlds)

    def work(self, address: Any, arrays: dict[str, Any]) -> Work:
        """The kernel's argument.

        Args:
            address: a function that gives the address of an array.
            arrays: the constants and `scratch`, `chosen`, `num_chosen`, and parameters and fields by their names.
        """
        names = {**dict(zip(_POINTERS[9:13], MASSES, strict=True)), **dict(zip(_POINTERS[13:17], WEIGHTS, strict=True))}
        own = [arrays.get(names.get(name, name)) for name in _POINTERS]
        mj = self.model.mj
        pointers = (None if array is None else address(array) for array in own)
        return Work(*pointers, self.room, mj.nbody, mj.nv, mj.ntendon, 0)


def means(mj: mujoco.MjModel) -> np.ndarray:
    """First dof and number of the dofs over which the weight of a dof is the mean, (nv, 2) int32.

    These are the dofs of a ball joint, and either half of those of a free joint.
    """
    found = np.stack([np.arange(mj.nv), np.ones(mj.nv, int)], axis=1)
    for joint in range(mj.njnt):
        kind, dof = mj.jnt_type[joint], int(mj.jnt_dofadr[joint])
        starts = {mujoco.mjtJoint.mjJNT_FREE: (dof, dof + 3), mujoco.mjtJoint.mjJNT_BALL: (dof,)}
        for start in starts.get(mujoco.mjtJoint(kind), ()):
            found[start : start + 3] = start, 3
    return found.astype(np.int32)
