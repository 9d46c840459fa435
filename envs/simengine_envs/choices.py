"""Arguments that are one of few values, or a number: errors name the values."""

from __future__ import annotations

from operator import index
from typing import Any

import numpy as np

from simengine.errors import did_you_mean
from simengine_envs.autoreset import AutoresetMode

DTYPES = ("float32", "float64")


def dtype_name(dtype: Any) -> str:
    """Name of the type of the engine's real numbers. Raises ValueError if it is none."""
    try:
        name = np.dtype(dtype).name
    except TypeError:
        name = str(dtype)
    if name not in DTYPES:
        raise ValueError(f"unknown dtype {name!r}{did_you_mean(name, DTYPES)}; choose one of {', '.join(DTYPES)}")
    return name


def autoreset_mode_of(mode: AutoresetMode | str) -> AutoresetMode:
    """A mode by its value. Raises ValueError if there is none."""
    values = [known.value for known in AutoresetMode]
    if not isinstance(mode, AutoresetMode) and mode not in values:
        hint = did_you_mean(str(mode), values)
        raise ValueError(f"autoreset_mode is {mode!r}{hint}; give one of {', '.join(values)}, or an AutoresetMode")
    return AutoresetMode(mode)


def whole_number(name: str, value: Any, least: int) -> int:
    """An integer that must not be less than another one. Raises TypeError or ValueError."""
    try:
        number = index(value)
    except TypeError:
        raise TypeError(f"{name} must be a whole number, not {value!r}") from None
    if number < least:
        raise ValueError(f"{name} must be at least {least}, not {number}")
    return number
