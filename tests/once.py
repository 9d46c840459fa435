"""Results that take long, computed once for all processes of a run."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

FOLDER = "SIMENGINE_TESTS_FOLDER"
"""Environment variable: the folder of a run, which its processes share."""

Arrays = dict[str, np.ndarray]


def once(name: str, compute: Callable[[], Arrays]) -> Arrays:
    """Arrays that `compute` returns, or those that another process has saved under `name`.

    Processes that ask at the same time each compute for themselves; every one reads a whole file or none.
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
