"""Settings that every test shares.

JAX programs are compiled without expensive optimisations, which takes far less time, and once for all processes of a
run: the tests run each only a few times. Those whose results many tests compare run once, see `tests/once.py`.
"""

from __future__ import annotations

import gc
import os
import shutil
import tempfile
from importlib.metadata import version
from pathlib import Path

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

from tests.once import FOLDER

# The references run in float64; outputs are poisoned with NaN on purpose, so NaN must not raise.
jax.config.update("jax_enable_x64", True)
jax.config.update("jax_debug_nans", False)

# Tracing makes millions of objects that live on; looking through all of them again and again takes long.
gc.set_threshold(20_000, 20, 20)

RUN = pytest.StashKey[Path]()
"""Folder of a run, in the process that made it."""


def pytest_configure(config: pytest.Config) -> None:
    """Make a folder of compiled programs and results, which processes started from here inherit."""
    if FOLDER in os.environ:
        return
    folder = config.stash[RUN] = Path(tempfile.mkdtemp(prefix="simengine-tests-"))
    os.environ[FOLDER] = str(folder)
    if "JAX_COMPILATION_CACHE_DIR" in os.environ:
        return
    # the variables are for those processes, this one has read them
    for name, value in (
        ("jax_compilation_cache_dir", str(folder)),
        ("jax_persistent_cache_min_compile_time_secs", 0.3),
    ):
        os.environ[name.upper()] = str(value)
        jax.config.update(name, value)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove it."""
    if RUN in config.stash:
        shutil.rmtree(config.stash[RUN], ignore_errors=True)
