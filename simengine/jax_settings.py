"""Settings that JAX reads from the environment when it first uses a device. What the user has set stays."""

from __future__ import annotations

import os

_FEWEST_THREADS = 8


def set_defaults() -> None:
    """Set what the engine needs, unless it is set.

    XLA gets several threads on machines with few cores. JAX's solvers of triangular matrices wait in a thread of XLA's
    pool for other threads of it. A program with as many independent solves as the pool has threads may therefore stand
    still for ever, which happened with two.

    JAX does not take three quarters of a GPU's memory when it starts, since the engine allocates its own.
    """
    if (os.cpu_count() or 1) < _FEWEST_THREADS:
        os.environ.setdefault("NPROC", str(_FEWEST_THREADS))
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
