"""The functions by which the time in the driver is measured, on a fake device."""

from __future__ import annotations

import ctypes
from array import array
from pathlib import Path
from typing import Any

from benchmarks import driver_time
from simengine_scheduler.native.compiling import build
from simengine_scheduler.testing import CalledDevice


def test_each_function_is_called_and_counted() -> None:
    device = CalledDevice(1, eagerness=1.0)
    stream, event = device.create_stream(), device.create_event(False)
    library: Any = ctypes.CDLL(str(build("timed_driver.so", [Path(driver_time.__file__).with_name("timed.cpp")])))
    functions = device.functions()
    table = array("q", [functions.launch, functions.record, functions.wait, functions.query, functions.launch_graph])
    library.timed_set(ctypes.c_void_p(table.buffer_info()[0]))
    event_at, stream_at = ctypes.c_int64(event), ctypes.c_int64(stream)
    assert library.timed_record(event_at, stream_at) == 0
    assert library.timed_wait(stream_at, event_at, 0) == 0
    while library.timed_query(event_at):
        pass
    seconds, calls = (ctypes.c_double * 5)(), (ctypes.c_int64 * 5)()
    library.timed_take(seconds, calls)
    assert list(calls)[:3] == [0, 1, 1]
    assert calls[3] >= 1
    assert all((spent > 0) == (number > 0) for spent, number in zip(seconds, calls, strict=True))
    library.timed_take(seconds, calls)
    assert not any(calls)
