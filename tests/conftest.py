"""Settings that every test shares."""

from __future__ import annotations

import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("MPLBACKEND", "Agg")

import jax

# The references run in float64; outputs are poisoned with NaN on purpose, so NaN must not raise.
jax.config.update("jax_enable_x64", True)
jax.config.update("jax_debug_nans", False)
