"""When the memory of images is freed. Stand-ins for programs and the driver are enough for it."""

from __future__ import annotations

import gc
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from simengine_scheduler import FixedList, KernelCall, Segments
from simengine_scheduler.device.workers import just_these
from simengine_scheduler.executors import device
from simengine_scheduler.executors.base import Options
from simengine_scheduler.launch import DeviceBody, DeviceTask

LOG: list[str] = []


class Block:
    """Memory that notes when it is freed."""

    data = SimpleNamespace(ptr=4096)

    def __del__(self) -> None:
        LOG.append("freed")


class Programs:
    """Kernels of a device that has none."""

    arch, multiprocessors, registers, shared, threads, blocks = 80, 4, 65536, 228 * 1024, 2048, 32
    workers_of = staticmethod(just_these)

    def __init__(self, keep: Any) -> None:
        pass

    def window(self) -> tuple[int, int]:
        return 1, 2

    def function(self, kind: Any, bodies: Any) -> int:
        return 3

    def pinned(self, count: int) -> np.ndarray:
        return np.zeros(count, np.int32)

    def upload(self, array: np.ndarray) -> Block:
        return Block()


class Silent:
    """A driver that does nothing, and notes when the host waits for a stream."""

    def __init__(self) -> None:
        self._made = 0

    def _make(self, *_: Any) -> int:
        self._made += 1
        return self._made

    create_stream = create_event = build_graph = _make

    def current_stream(self) -> int:
        return 0

    def synchronize(self, stream: int) -> None:
        LOG.append("the host waits")

    def query(self, event: int) -> bool:
        return True

    def functions(self) -> None:
        return None

    def __getattr__(self, name: str) -> Any:
        return lambda *_: None


@pytest.fixture
def executors(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes executors of a device that is not there."""
    LOG.clear()
    monkeypatch.setattr(device, "CudaPrograms", Programs)
    monkeypatch.setattr(device, "CudaLaunch", lambda *_: None)
    device._LAST.executor = None
    return lambda table: device.DeviceExecutor(Options(segments=table, driver=Silent()))


def one_call(table: Segments) -> FixedList:
    launch = SimpleNamespace(
        task=DeviceTask(DeviceBody("body", b"code"), 3), packed_arguments=lambda: np.zeros(0, np.uint64), buffers=None
    )
    return FixedList([KernelCall("call", launch, (), (table.intern("field"),))])


@pytest.mark.parametrize("closed", [True, False])
def test_memory_is_freed_after_the_list_has_ended(executors: Any, closed: bool) -> None:
    """Also if another executor was the last to launch a list, and if the executor is forgotten without `close`."""
    table = Segments()
    first, second = executors(table), executors(table)
    for executor in (first, second):
        executor.run([one_call(table)])
    LOG.clear()
    if closed:
        first.close()
    del first, executor
    gc.collect()
    assert LOG.count("freed") == 1
    assert "the host waits" in LOG[: LOG.index("freed")]
    second.close()
