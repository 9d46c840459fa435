"""Fixtures that tests of the scheduler share."""

from __future__ import annotations

from typing import Any

import pytest

from simengine_scheduler.executors import auto
from tests.scheduler.timed_executors import Clock


@pytest.fixture(scope="module")
def cupy() -> Any:
    module = pytest.importorskip("cupy")
    try:
        devices = module.cuda.runtime.getDeviceCount()
    except module.cuda.runtime.CUDARuntimeError:
        devices = 0
    if devices == 0:
        pytest.skip("no CUDA device")
    return module


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The time of executor `auto`, which passes only where a test lets it."""
    made = Clock()
    monkeypatch.setattr(auto, "perf_counter", made)
    return made
