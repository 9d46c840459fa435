"""A training on a GPU: what is compiled again gives the same bits."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import jax
import pytest

pytestmark = pytest.mark.gpu
CACHES = ("SIMENGINE_CACHE_DIR", "CUPY_CACHE_DIR", "CUDA_CACHE_PATH")
OPTIONS = {"JAX_PLATFORMS": "cuda,cpu", "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}


def train_cold(folder: Path) -> Path:
    """Train for ten updates with nothing in any cache, and return the folder of the results."""
    out, caches = folder / "out", {name: str(folder / name) for name in CACHES}
    environment = {name: value for name, value in os.environ.items() if name != "JAX_COMPILATION_CACHE_DIR"}
    settings = ["total_steps=655360", "checkpoint_every=10", "eval_episodes=8"]
    words = [sys.executable, "-m", "simengine.cli.main", "train", "ant", *settings, "--out", str(out)]
    done = subprocess.run(words, env=environment | OPTIONS | caches, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return out


def test_programs_that_are_compiled_again_have_the_same_bits(tmp_path: Path) -> None:
    try:
        jax.devices("gpu")
    except RuntimeError:
        pytest.skip("JAX has no GPU here")
    one, two = (train_cold(tmp_path / name) for name in ("one", "two"))
    for name in ("curve.csv", "evaluations.csv", "summary.json"):
        assert (one / name).read_bytes() == (two / name).read_bytes(), name
