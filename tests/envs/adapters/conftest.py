"""Fixtures for tests with training libraries."""

from __future__ import annotations

from collections.abc import Iterator

import jax
import pytest


@pytest.fixture
def single_precision() -> Iterator[None]:
    """JAX as training programs use it, without 64-bit numbers."""
    with jax.enable_x64(False):
        yield
