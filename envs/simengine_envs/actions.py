"""Checks of the actions an environment is given."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from simengine_envs.arrays import ArrayKind


def checked_actions(action: Any, shape: tuple[int, ...], where: str, used: np.ndarray | None = None) -> np.ndarray:
    """Check actions and copy them.

    Args:
        action: what the user gave.
        shape: the shape that it must have, (nu,) or (num_envs, nu).
        where: name of the environment, for messages.
        used: (num_envs,) bool, which rows will be used; None for all. Other rows are not checked and become zero.

    Returns:
        The actions as a new float64 array.

    Raises:
        TypeError: these are not numbers.
        ValueError: the shape is wrong, or an entry that will be used is not a finite number.
    """
    try:
        given = np.asarray(action)
    except ValueError:  # lists of several lengths
        raise ValueError(f"the action given to {where} is no array; give one of shape {shape}") from None
    if given.dtype.kind not in "fiu":
        raise TypeError(f"the action given to {where} has type {given.dtype}; give real numbers")
    array = np.array(given, dtype=np.float64, order="C")
    if array.shape != shape:
        raise ValueError(f"the action given to {where} has shape {array.shape}; give one of shape {shape}")
    if used is not None:
        array[~used] = 0
    if not np.isfinite(array).all():
        place = np.argwhere(~np.isfinite(array))[0].tolist()
        raise ValueError(
            f"the action given to {where} is {array[tuple(place)]} at index {place}; give finite numbers in every entry"
        )
    return array


def checked_device_actions(action: Any, shape: tuple[int, ...], where: str, kind: ArrayKind, device: Any) -> Any:
    """Check actions that are arrays of a library, and convert them to an array of JAX without a copy.

    Numbers that are not finite are found later, without waiting; see `Runner.step`.

    Args:
        action: what the user gave.
        shape: the shape that it must have.
        where: name of the environment, for messages.
        kind: the library.
        device: JAX device of the environment.

    Raises:
        TypeError: it is an array of another library, of integers, or on another device.
        ValueError: the shape is wrong.
    """
    if not isinstance(action, kind.type):
        found = f"{type(action).__module__}.{type(action).__qualname__}"
        raise TypeError(f"the action given to {where} is a {found}; give an array of {kind.name}, as array= says")
    if tuple(action.shape) != shape:
        raise ValueError(f"the action given to {where} has shape {tuple(action.shape)}; give one of shape {shape}")
    converted = kind.to_jax(action)
    if not np.issubdtype(converted.dtype, np.floating):
        raise TypeError(f"the action given to {where} has type {converted.dtype}; give real numbers")
    if isinstance(converted, jax.core.Tracer):
        return converted
    if converted.devices() != {device}:
        there = next(iter(converted.devices()))
        raise TypeError(f"the action given to {where} lies on {there}, but the environment on {device}; move it there")
    return converted
