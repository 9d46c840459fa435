"""Settings that every test shares.

JAX programs are compiled without expensive optimisations, which takes far less time, and once for all processes of a
run: the tests run each only a few times.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from importlib.metadata import version

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("MPLBACKEND", "Agg")
# The older emitters take a third to a quarter of the time, as long as there are any: XLA ends a process that names an
# option it does not know. The tests use every core without splitting a program.
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_backend_optimization_level=0 --xla_cpu_parallel_codegen_split_count=1"
    + " --xla_cpu_use_fusion_emitters=false" * (tuple(map(int, version("jaxlib").split(".")[:2])) < (0, 11)),
)

import jax
import pytest

# The references run in float64; outputs are poisoned with NaN on purpose, so NaN must not raise.
jax.config.update("jax_enable_x64", True)
jax.config.update("jax_debug_nans", False)

PROGRAMS = pytest.StashKey[str]()
"""Folder of compiled programs, in the process that made it."""


def pytest_configure(config: pytest.Config) -> None:
    """Make a folder of compiled programs, which processes started from here inherit."""
    if "JAX_COMPILATION_CACHE_DIR" in os.environ:
        return
    folder = config.stash[PROGRAMS] = tempfile.mkdtemp(prefix="simengine-jax-")
    # the variables are for those processes, this one has read them
    for name, value in (("jax_compilation_cache_dir", folder), ("jax_persistent_cache_min_compile_time_secs", 0.3)):
        os.environ[name.upper()] = str(value)
        jax.config.update(name, value)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove it."""
    if PROGRAMS in config.stash:
        shutil.rmtree(config.stash[PROGRAMS], ignore_errors=True)
