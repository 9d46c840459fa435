"""GPU tests skip, with the reason, where there is no GPU."""

from __future__ import annotations

from functools import lru_cache

import pytest

from simengine import available_backends


@lru_cache(maxsize=1)
def why_not() -> str:
    """Why the cuda backend cannot run here; empty if it can."""
    return available_backends()["cuda"]


@pytest.fixture(autouse=True)
def _needs_a_gpu(request: pytest.FixtureRequest) -> None:
    if request.node.get_closest_marker("gpu") and why_not():
        pytest.skip(why_not())
