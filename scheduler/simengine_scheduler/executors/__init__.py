"""Executors: ways of running lists of kernels, one file each. `simengine_scheduler.registry` names them.

`base` holds what all of them offer and their options, `cuda` what those on CUDA streams share.
"""

from .auto import AutoExecutor
from .base import Executor, Options, run_repeatedly

__all__ = [
    "AutoExecutor",
    "Executor",
    "Options",
    "run_repeatedly",
]
