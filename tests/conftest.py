"""Settings that every test shares.

JAX compiles programs without expensive optimisations, and once for all processes of a run. This takes far less time,
because tests run each program only a few times. Results that many tests compare are computed once; see
`tests/helpers/once.py`.
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
# XLA's older emitters compile in a third to a quarter of the time. XLA ends a process that names an unknown option, so
# the option must go when XLA drops it. Programs are not split over cores, because the tests already use every core.
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_backend_optimization_level=0 --xla_cpu_parallel_codegen_split_count=1"
    + " --xla_cpu_use_fusion_emitters=false" * (tuple(map(int, version("jaxlib").split(".")[:2])) < (0, 11)),
)

import jax
import pytest

from tests.helpers.once import FOLDER

# The references run in float64. Tests poison outputs with NaN, so NaN must not raise.
jax.config.update("jax_enable_x64", True)
jax.config.update("jax_debug_nans", False)

# Tracing makes millions of long-lived objects. The garbage collector would spend much time on them.
gc.set_threshold(20_000, 20, 20)

RUN = pytest.StashKey[Path]()
"""The folder of a run, stored in the process that made it."""


def pytest_configure(config: pytest.Config) -> None:
    """Make a folder for compiled programs and results, which all processes of the run share."""
    if FOLDER in os.environ:
        return
    folder = config.stash[RUN] = Path(tempfile.mkdtemp(prefix="simengine-tests-"))
    os.environ[FOLDER] = str(folder)
    if "JAX_COMPILATION_CACHE_DIR" in os.environ:
        return
    # the variables are for the other processes; JAX has already read them in this one
    for name, value in (
        ("jax_compilation_cache_dir", str(folder)),
        ("jax_persistent_cache_min_compile_time_secs", 0.03),
    ):
        os.environ[name.upper()] = str(value)
        jax.config.update(name, value)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove the folder of the run."""
    if RUN in config.stash:
        shutil.rmtree(config.stash[RUN], ignore_errors=True)
