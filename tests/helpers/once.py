"""Results that take long, computed once for all processes of a run."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

FOLDER = "SIMENGINE_TESTS_FOLDER"
"""The environment variable with the folder that all processes of a run share."""

Arrays = dict[str, np.ndarray]


def once(name: str, compute: Callable[[], Arrays]) -> Arrays:
    """Return the arrays of `compute`, or those that another process has saved under `name`.

    Processes that ask at the same time compute independently. A process never reads a file that is not complete.
    """
    if FOLDER not in os.environ:
        return compute()
    path = Path(os.environ[FOLDER]) / f"{name}.npz"
    if path.exists():
        with np.load(path) as saved:
            return dict(saved)
    arrays = compute()
    handle, temporary = tempfile.mkstemp(suffix=".npz", dir=path.parent)
    with os.fdopen(handle, "wb") as file:
        np.savez(file, **arrays)
    os.replace(temporary, path)
    return arrays
