"""Fixtures for steps inside JAX programs."""

from __future__ import annotations

from collections.abc import Iterator

import jax
import pytest


@pytest.fixture
def small_numbers() -> Iterator[None]:
    """Single precision, as JAX has it unless it is told otherwise."""
    before = jax.config.read("jax_enable_x64")
    jax.config.update("jax_enable_x64", False)
    yield
    jax.config.update("jax_enable_x64", before)
