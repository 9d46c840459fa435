"""The threads of an executor stay away from the processor of the thread that runs with them."""

from __future__ import annotations

import os
import sys
import threading

import pytest

from simengine.backends.host import HostBackend
from simengine_scheduler import KernelCall, PythonLaunch, Segments, make_executor

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux") or len(os.sched_getaffinity(0)) < 2, reason="needs Linux and two processors"
)


def test_threads_of_a_pool_leave_one_processor_to_the_caller() -> None:
    allowed, segments = os.sched_getaffinity(0), Segments()
    executor = make_executor("threads", workers=2, segments=segments)
    met, seen = threading.Barrier(2, timeout=30), {}

    def note() -> None:
        met.wait()  # so that both workers take a call
        seen[threading.get_native_id()] = os.sched_getaffinity(0)

    executor.run([[KernelCall("note", PythonLaunch(note), (), (segments.intern(f"s{k}"),))] for k in range(2)])
    executor.close()
    own = seen.pop(threading.get_native_id())
    (other,) = seen.values()
    assert own == allowed
    assert len(other) == len(allowed) - 1
    assert other < allowed


def test_a_process_that_may_use_one_processor_has_one_worker_and_one_shard() -> None:
    """However many the machine has."""
    allowed = os.sched_getaffinity(0)
    there = set(threading.enumerate())
    os.sched_setaffinity(0, {min(allowed)})
    try:
        executor = make_executor("threads", segments=Segments())
        executor.run([[KernelCall("nothing", PythonLaunch(lambda: None), (), ())]])
        assert set(threading.enumerate()) <= there
        executor.close()
        assert HostBackend().shards_for(64, "threads", "whole") == 1
    finally:
        os.sched_setaffinity(0, allowed)
    assert HostBackend().shards_for(64, "threads", "whole") == min(64, len(allowed))
