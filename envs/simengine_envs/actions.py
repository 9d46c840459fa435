"""Checks of the actions an environment is given."""

from __future__ import annotations

from typing import Any

import numpy as np


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
        ValueError: the shape is wrong, or an entry that will be used is not a finite number.
    """
    array = np.array(action, dtype=np.float64, order="C")
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
