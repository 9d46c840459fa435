"""Copies of either backend's arrays on the host, and their errors against MuJoCo."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simengine import Simulation
from simengine.state.fields import INTEGRATION_STATE

CUDA = pytest.param("cuda", marks=pytest.mark.gpu)

both = pytest.mark.parametrize("backend", ["host", CUDA])
"""Runs a test on both backends."""

host_later = pytest.mark.parametrize("backend", [pytest.param("host", marks=pytest.mark.slow), CUDA])
"""Runs a test on both backends, on the host in the second stage: other tests of the first have the same there."""

cuda_only = pytest.mark.parametrize("backend", [CUDA])
"""Runs a test on the GPU only, because it adds nothing on the host or compares the two."""

SOLUTION = ("qacc", "qfrc_constraint", "cfrc_ext", "efc_force", "cacc", "cfrc_int", "sensordata")
TOLERANCE = {
    "smooth": {"float64": 1e-9, "float32": 1e-4},
    "contact": {"float64": 1e-8, "float32": 1e-4},
    "row": {"float64": 1e-8, "float32": 2e-4},
    "solution": {"float64": 1e-6, "float32": 2e-3},
    "step": {"float64": 1e-6, "float32": 1e-3},
}
"""Largest relative error against MuJoCo, by kind of field."""


def kind(name: str) -> str:
    """The kind of a field, which decides its tolerance."""
    if name in SOLUTION:
        return "solution"
    return {"con": "contact", "efc": "row"}.get(name[:3], "smooth") if "_" in name else "smooth"


def to_host(array: Any) -> np.ndarray:
    """A copy of a backend's array on the host."""
    return np.array(array.get() if hasattr(array, "get") else array)


def state_bits(sim: Simulation, group: int = 0, worlds: Any = slice(None)) -> dict[str, bytes]:
    """The bits of the integration state of some worlds of a group."""
    return {name: to_host(sim.groups[group].field(name))[worlds].tobytes() for name in INTEGRATION_STATE}


def relative(actual: np.ndarray, expected: np.ndarray, least: np.ndarray | float = 1.0) -> float:
    """Largest error over the first axis, relative to each entry's largest number, or to `least` if that is larger."""
    assert actual.size == expected.size, f"sizes {actual.shape} and {expected.shape}"
    if not expected.size:
        return 0.0
    a, b = (x.astype(np.float64).reshape(len(expected), -1) for x in (actual, expected))
    value = float((np.abs(a - b).max(axis=1) / np.maximum(least, np.abs(b).max(axis=1))).max())
    return value if np.isfinite(value) else np.inf


class Worst:
    """The largest error of each field so far."""

    def __init__(self) -> None:
        self.errors: dict[str, float] = {}

    def note(self, name: str, actual: np.ndarray, expected: np.ndarray, least: np.ndarray | float = 1.0) -> None:
        """Compare entries along the first axis."""
        self.errors[name] = max(self.errors.get(name, 0.0), relative(actual, expected, least))

    def beyond(self, dtype: str) -> dict[str, float]:
        """Fields whose error is larger than their tolerance."""
        return {k: v for k, v in self.errors.items() if not v <= TOLERANCE[kind(k)][dtype]}

    def __str__(self) -> str:
        return ", ".join(f"{k} {v:.1e}" for k, v in sorted(self.errors.items(), key=lambda e: -e[1]))
