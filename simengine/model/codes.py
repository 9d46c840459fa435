"""Tests of MuJoCo's codes, such as the types of joints, without the fixed cost of `numpy.isin`."""

from __future__ import annotations

import numpy as np


def among(values: np.ndarray, *codes: int) -> np.ndarray:
    """(as values) bool: whether a value is one of the codes, which may be members of MuJoCo's enumerations."""
    found = values == int(codes[0])
    for code in codes[1:]:
        found |= values == int(code)
    return np.asarray(found)
