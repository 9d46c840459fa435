"""Checks and conversions of the arguments of `Simulation`, `Group` and `Schedule`. No other file checks them again."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any, TypeAlias, cast

import mujoco
import numpy as np

from simengine.arrays import Array, ArrayLike, to_host
from simengine.errors import did_you_mean
from simengine.loading import load_model
from simengine.model.model import Model
from simengine.state.fields import FIELD
from simengine_scheduler import Options

ModelSource: TypeAlias = str | os.PathLike[str] | mujoco.MjModel | Model
"""Anything that `load_model` takes."""

_DTYPES = ("float32", "float64")
_OPTIONS = tuple(field.name for field in fields(Options) if field.name != "segments")


def choice(what: str, value: Any, choices: Sequence[str]) -> str:
    """Return the value if it is one of the choices. Otherwise raise ValueError, which suggests the nearest choice."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"unknown {what} {value!r}{did_you_mean(value, choices)}; choose one of {', '.join(choices)}")
    return value


def dtype_name(dtype: Any) -> str:
    """Return "float32" or "float64" for a name or a type of NumPy or JAX. Raises ValueError for another type."""
    try:
        name = np.dtype(dtype).name if dtype is not None else "None"
    except TypeError:
        name = str(dtype)
    if name not in _DTYPES:
        raise ValueError(f"unknown dtype {dtype!r}{did_you_mean(name, _DTYPES)}; choose one of {', '.join(_DTYPES)}")
    return name


def checked_options(options: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return executor options as a dict. Raises ValueError for an unknown name, and suggests the nearest one."""
    for name in options or ():
        if name not in _OPTIONS:
            raise ValueError(
                f"unknown executor option {name!r}{did_you_mean(name, _OPTIONS)}; the options are {', '.join(_OPTIONS)}"
            )
    return dict(options or {})


def is_positive(n: Any) -> bool:
    """Whether a value is an integer of at least one."""
    return isinstance(n, (int, np.integer)) and not isinstance(n, bool) and bool(n >= 1)


def number_of_steps(n: Any) -> int:
    """Return a number of steps as an int. Raises ValueError unless it is a positive integer."""
    if not is_positive(n):
        shown = repr(n) if np.isscalar(n) else type(n).__name__
        raise ValueError(f"step(n) takes a positive number of steps, got {shown}; pass controls as step(ctrl=...)")
    return int(n)


def models_and_worlds(
    model: ModelSource | Sequence[tuple[ModelSource, int]], num_worlds: int | None
) -> list[tuple[Model, int]]:
    """Return the model and number of worlds of each group. Raises ValueError if the arguments describe no batch."""
    pairs: list[tuple[Model, Any]]
    if isinstance(model, (list, tuple)):
        if num_worlds is not None:
            raise ValueError("num_worlds goes with a single model; a list of models carries its own numbers of worlds")
        for index, entry in enumerate(model):
            if not isinstance(entry, (list, tuple)) or len(entry) != 2:
                raise ValueError(f"entry {index} of the list of models is no pair; give (model, number of worlds)")
        pairs = [(load_model(source), count) for source, count in model]
        if not pairs:
            raise ValueError("Simulation got an empty list of models; give at least one (model, number of worlds)")
    else:
        single = cast(ModelSource, model)
        pairs = [(load_model(single), 1 if num_worlds is None else num_worlds)]
    for loaded, count in pairs:
        if not is_positive(count):
            raise ValueError(f"model {loaded.name!r} was given {count!r} worlds; give a positive integer")
    return [(loaded, int(count)) for loaded, count in pairs]


def kept_fields(keep: Iterable[str]) -> frozenset[str]:
    """Return the names in `keep` as a set. Raises ValueError for an unknown field, and suggests the nearest one."""
    if not isinstance(keep, Iterable):
        raise ValueError(f"keep is {keep!r}, which names no fields; give some of simengine.state.fields.FIELDS")
    names = frozenset((keep,) if isinstance(keep, str) else keep)
    of_worlds = [name for name, field in FIELD.items() if field.space == "world"]
    for name in sorted(names):
        if name not in of_worlds:
            hint = did_you_mean(name, of_worlds)
            raise ValueError(f"keep names {name!r}, which is no world field{hint}; see simengine.state.fields.FIELDS")
    return names


def check_world(world: Any, num_worlds: int) -> None:
    """Raise ValueError unless `world` is the index of a world."""
    if not isinstance(world, (int, np.integer)) or not 0 <= world < num_worlds:
        raise ValueError(f"world {world!r} does not exist; there are {num_worlds}, numbered from 0")


def chosen_worlds(worlds: Any, num_worlds: int) -> np.ndarray | None:
    """Return indices of worlds, (n,), from a mask or from indices; None stands for all worlds.

    Raises:
        ValueError: `worlds` is neither a mask nor distinct indices of worlds.
    """
    if worlds is None:
        return None
    chosen = to_host(worlds)
    if chosen.dtype == bool:
        if chosen.shape != (num_worlds,):
            raise ValueError(f"the mask of worlds has shape {chosen.shape}, expected ({num_worlds},)")
        return np.flatnonzero(chosen)
    chosen = np.atleast_1d(chosen)
    if chosen.size == 0:
        return chosen.astype(np.int64)
    if chosen.dtype.kind not in "iu" or chosen.ndim != 1:
        given = repr(worlds) if chosen.ndim == 1 else f"an array of shape {chosen.shape}"
        raise ValueError(f"worlds must be None, a mask or a list of indices, got {given}")
    for world in (chosen.min(), chosen.max()):
        check_world(int(world), num_worlds)
    unique, times = np.unique(chosen, return_counts=True)
    if len(unique) != len(chosen):
        raise ValueError(f"world {int(unique[times > 1][0])} is listed twice; list every world once")
    return chosen


def checked_values(
    name: str,
    value: ArrayLike,
    entry: tuple[int, ...],
    count: int,
    dtype: str,
    beside: Array | None = None,
    within: str | None = None,
) -> Array:
    """Return a value as an array of shape (count, *entry) or entry.

    A value on the host is copied to an array of type `dtype`, and must be finite in it, or in `within` if given. Arrays
    of CuPy and JAX are returned unchanged, because reading their values would wait for the device. They must be on the
    device of the array `beside`, if there is one.

    Raises:
        ValueError: the value has another shape, holds no numbers, is on another device, or is on the host and not
            finite.
    """
    array = _as_array(name, value, beside)
    if tuple(array.shape) not in (entry, (count, *entry)):
        raise ValueError(f"{name} has shape {tuple(array.shape)}, expected {(count, *entry)} or {entry}")
    if not isinstance(array, np.ndarray):
        return array
    # always a copy, so that later changes to the caller's array have no effect
    values, held = _rounded(array, dtype), within or dtype
    finite = np.isfinite(values if held == dtype else _rounded(array, held))
    if not finite.all():
        where = np.argwhere(~finite)[0].tolist()
        raise ValueError(f"{name} holds {array[tuple(where)]} at {where}; give numbers that are finite in {held}")
    return cast(Array, values)


def _rounded(array: np.ndarray, dtype: str) -> np.ndarray:
    """A copy of an array in a type; numbers beyond it become infinite."""
    if array.dtype == dtype:
        return array.copy()
    with np.errstate(over="ignore"):
        return array.astype(dtype)


def checked_controls(
    n: int, value: ArrayLike, num_worlds: int, nu: int, dtype: str, beside: Array | None = None
) -> Array:
    """Return controls for `n` steps as an array.

    The shape is (num_worlds, nu) or (nu,) for controls that all steps share, and (n, num_worlds, nu) for controls of
    each step.

    Raises:
        ValueError: the controls have another shape, are on another device than the array `beside`, or are on the host
            and not finite.
    """
    array = _as_array("ctrl", value, beside)
    if array.ndim < 3:
        return checked_values("ctrl", array, (nu,), num_worlds, dtype)
    if tuple(array.shape) != (n, num_worlds, nu):
        shapes = f"{tuple(array.shape)}, expected {(n, num_worlds, nu)}"
        raise ValueError(f"ctrl has shape {shapes} for {n} steps")
    return checked_values("ctrl", array, (num_worlds, nu), n, dtype)


def _as_array(name: str, value: Any, beside: Array | None) -> Any:
    """Return an array of CuPy or JAX unchanged, and anything else as a NumPy array of real numbers."""
    if hasattr(value, "__cuda_array_interface__") or type(value).__module__.startswith("jax"):
        _check_device(name, value, beside)
        return value
    try:
        array = np.asarray(value)
        if array.dtype.kind in "biuf":
            return array
    except ValueError:  # rows of different lengths
        pass
    raise ValueError(f"{name} is no rectangular array of real numbers; give one, as a NumPy array or nested lists")


_DEVICES = {1: "the host", 2: "GPU", 3: "the host", 13: "any GPU"}  # by DLPack's number of a kind of device


def _check_device(name: str, value: Any, beside: Any) -> None:
    """Raise ValueError unless an array is on the device of another one, as far as both can tell."""
    if not hasattr(value, "__dlpack_device__") or not hasattr(beside, "__dlpack_device__"):
        return
    (kind, number), (own, own_number) = value.__dlpack_device__(), beside.__dlpack_device__()
    there, here = (
        f"GPU {index}" if int(of) == 2 else _DEVICES.get(int(of), f"a device of kind {int(of)}")
        for of, index in ((kind, number), (own, own_number))
    )
    if there not in (here, "any GPU"):
        raise ValueError(f"{name} lies on {there}, but the simulation on {here}; move it there, or give a NumPy array")
