"""Fixtures that the GPU tests of the scheduler share."""

from __future__ import annotations

from typing import Any

import pytest


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
