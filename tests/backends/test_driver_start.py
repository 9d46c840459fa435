"""The CUDA driver starts while CuPy is imported, unless somebody has started it. These tests need no GPU."""

from __future__ import annotations

import ctypes
import sys
from typing import Any

import pytest

from simengine.backends import driver_start
from simengine.backends.driver_start import start_driver


class Driver:
    """A driver that notes what it is asked for."""

    def __init__(self, started: bool = False, status: int = 0) -> None:
        self.calls: list[str] = []
        self._started = started
        self._status = status

    def cuCtxGetCurrent(self, context: Any) -> int:
        return 0 if self._started else 3

    def cuInit(self, flags: int) -> int:
        self.calls.append("init")
        return self._status

    def cuDeviceGet(self, device: Any, ordinal: int) -> int:
        self.calls.append(f"device {ordinal}")
        return 0

    def cuDevicePrimaryCtxRetain(self, context: Any, device: Any) -> int:
        self.calls.append("context")
        return 0


@pytest.fixture
def _before_cupy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "cupy", raising=False)
    monkeypatch.setattr(driver_start, "find_spec", lambda name: name)


def calls_of(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr(ctypes, "CDLL", lambda name: driver)
    thread = start_driver()
    assert thread is not None
    thread.join()
    return driver.calls


@pytest.mark.usefixtures("_before_cupy")
def test_the_driver_and_the_context_of_the_first_gpu_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    assert calls_of(Driver(), monkeypatch) == ["init", "device 0", "context"]


@pytest.mark.usefixtures("_before_cupy")
def test_a_driver_in_use_or_without_a_gpu_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    assert calls_of(Driver(started=True), monkeypatch) == []
    assert calls_of(Driver(status=100), monkeypatch) == ["init"]


@pytest.mark.usefixtures("_before_cupy")
def test_no_driver_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise OSError(name)

    monkeypatch.setattr(ctypes, "CDLL", missing)
    thread = start_driver()
    assert thread is not None
    thread.join()


def test_nothing_starts_without_cupy_or_once_it_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    assert start_driver() is None
    monkeypatch.delitem(sys.modules, "cupy")
    monkeypatch.setattr(driver_start, "find_spec", lambda name: None)
    assert start_driver() is None
