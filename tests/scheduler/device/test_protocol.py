"""The protocol of the device executor on host threads: legal, the results of serial, stuck lists named."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simengine_scheduler import AwaitCounts, CallError, KernelCall, Segments, validate
from simengine_scheduler.executors.base import HazardsOn, Options
from simengine_scheduler.launch import Tiling
from simengine_scheduler.testing.threaded_device import PythonBody, ThreadedDevice, build
from tests.scheduler.device.programs import random_program


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    window=st.sampled_from((1, 2, 5, 32, 70)),
    workers=st.integers(1, 4),
    tiled=st.booleans(),
    merged=st.booleans(),
    ready=st.booleans(),
    hazards=st.sampled_from(("host", "device")),
)
def test_random_lists_are_legal_and_as_serial(
    seed: int, window: int, workers: int, tiled: bool, merged: bool, ready: bool, hazards: HazardsOn
) -> None:
    program = random_program(seed)
    half = len(program.calls) // 2
    chosen = {"window": window, "tiled": tiled, "merged": merged, "ready": ready}
    options = Options(segments=program.segments, record="times", watchdog=30.0, hazards=hazards, **chosen)
    trace = ThreadedDevice(options, workers).run([program.calls[:half], program.calls[half:]])
    got = program.data.copy()
    assert validate(trace.order, trace, program.segments) == []
    counters = trace.counters
    if options.knows_waits:
        assert counters.compare_seconds == counters.check_seconds == 0
    else:
        assert 0 < counters.compare_seconds < counters.check_seconds
    np.testing.assert_array_equal(got, program.expected(trace.order))


def test_a_ready_call_starts_though_an_earlier_one_waits() -> None:
    """One block is busy with the call that the second waits for. The other runs the third, which waits for nothing."""

    def ran(ready: bool) -> list[str]:
        segments, log, third = Segments(), [], threading.Event()
        a, b = segments.intern("a"), segments.intern("b")

        def slow(tile: int) -> None:
            third.wait(10.0 if ready else 0.3)
            log.append("slow")

        def free(tile: int) -> None:
            log.append("free")
            third.set()

        calls = [
            KernelCall("slow", PythonBody(slow), (), (a,)),
            KernelCall("waits", PythonBody(lambda tile: log.append("waits")), (a,), ()),
            KernelCall("free", PythonBody(free), (), (b,)),
        ]
        ThreadedDevice(Options(segments=segments, ready=ready, hazards="device", watchdog=60.0), 2).run([calls])
        return log

    assert ran(True) == ["free", "slow", "waits"]
    assert ran(False)[0] == "slow"  # the block with the ticket of the second call waits, and nobody takes the third


@pytest.mark.parametrize("workers", [1, 2, 5])
@pytest.mark.parametrize(("ready", "hazards"), [(False, "device"), (True, "device"), (False, "host")])
def test_classes_without_room_for_all_their_blocks_still_run_together(
    workers: int, ready: bool, hazards: HazardsOn
) -> None:
    """There are places for the window and for one block of each class, and blocks of the first class take all."""
    for seed in range(4):
        program = random_program(seed)
        options = Options(segments=program.segments, window=8, watchdog=60.0, ready=ready, hazards=hazards)
        trace = ThreadedDevice(options, workers, places=3).run([program.calls])
        got = program.data.copy()
        assert trace.counters.calls == len(program.calls)
        np.testing.assert_array_equal(got, program.expected(program.calls))


def chain(segments: Segments, functions: list, tiles: int = 4, **task: object) -> list[KernelCall]:
    """Calls that all update one field by tiles."""
    field = segments.intern("field")
    return [
        KernelCall(f"call{i}", PythonBody(f, tiles, **task), (), (), (field,), tiled=(field,))
        for i, f in enumerate(functions)
    ]


def overlaps(tiled: bool, **task: object) -> bool:
    """Whether a tile of the second of two calls starts before all tiles of the first have ended."""
    segments, log = Segments(), []

    def first(tile: int) -> None:
        time.sleep(0.15 if tile == 3 else 0.0)
        log.append(("first", tile))

    calls = chain(segments, [first, lambda tile: log.append(("second", tile))], **task)
    options = Options(segments=segments, record="order", tiled=tiled, watchdog=30.0)
    trace = ThreadedDevice(options, workers=4).run([calls])
    assert validate(trace.order, trace, segments) == []
    assert sorted(log) == sorted([(name, tile) for name in ("first", "second") for tile in range(4)])
    return log.index(("second", 0)) < log.index(("first", 3))


def test_calls_wait_for_single_tiles_where_they_may() -> None:
    assert overlaps(True)
    assert not overlaps(False)


def test_rows_and_strides_wait_for_all_tiles_of_a_part() -> None:
    # rows of two: parts 0 and 1; the slow tile 3 belongs to part 1, for which tile 0 does not wait
    assert overlaps(True, tiling=Tiling("row", 2))
    # one part: all tiles
    assert not overlaps(True, tiling=Tiling("row", 4))
    # by stride 2, tile 0 shares its part with tile 2 only
    assert overlaps(True, tiling=Tiling("strided", 2))
    assert not overlaps(True, tiling=Tiling("strided", 1))


def test_the_same_thread_goes_on_with_the_same_tile_of_the_next_call() -> None:
    segments, log = Segments(), []

    def of(call: int):  # type: ignore[no-untyped-def]
        return lambda tile: log.append((tile, call, threading.get_ident()))

    calls = chain(segments, [of(0), of(1), of(2)])
    ThreadedDevice(Options(segments=segments, hazards="host", watchdog=30.0), workers=2).run([calls])
    for tile in range(4):
        own = [entry for entry in log if entry[0] == tile]
        assert [call for _, call, _ in own] == [0, 1, 2]
        assert len({thread for *_, thread in own}) == 1


def test_tiles_beyond_the_units_that_the_device_counts_do_nothing() -> None:
    segments, ran, count = Segments(), [], np.zeros(1, np.int32)
    field = segments.intern("field")

    class Count:
        """What `address_of` takes for device memory."""

        __cuda_array_interface__ = {"data": (count.ctypes.data, False)}  # noqa: RUF012

    counted = PythonBody(lambda tile: count.__setitem__(0, 5))
    listed = PythonBody(ran.append, 8, count=Count(), units=2)
    calls = [KernelCall("count", counted, (), (field,)), KernelCall("listed", listed, (field,), ())]
    ThreadedDevice(Options(segments=segments)).run([calls])
    assert sorted(ran) == [0, 1, 2]


def test_an_emitter_reads_what_an_awaited_call_wrote() -> None:
    segments, found = Segments(), []
    field = segments.intern("field")
    call = KernelCall("count", PythonBody(lambda tile: found.append(7)), (), (field,))

    def emitter():  # type: ignore[no-untyped-def]
        yield call
        yield AwaitCounts(call)
        found.append(found[0] + 1)

    trace = ThreadedDevice(Options(segments=segments, record="order")).run([emitter()])
    assert found == [7, 8]
    assert trace.counters.awaits == 1


@pytest.mark.parametrize(("ready", "hazards"), [(False, "device"), (True, "device"), (False, "host")])
@pytest.mark.parametrize("merged", [False, True])
def test_a_stuck_list_is_given_up_and_names_who_waited_for_what(merged: bool, ready: bool, hazards: HazardsOn) -> None:
    segments, ran = Segments(), []
    calls = chain(segments, [ran.append] * 3, tiles=1)
    chosen: dict[str, Any] = {"merged": merged, "ready": ready, "hazards": hazards}
    executor = ThreadedDevice(Options(segments=segments, watchdog=0.2, tiled=False, **chosen), lose=1)
    with pytest.raises(CallError, match=r"call 'call2', tile 0, waited 0\.2 s for call 'call1', which has not ended"):
        executor.run([calls])
    assert len(ran) == 2
    # nothing of it stays behind
    ran.clear()
    ThreadedDevice(Options(segments=segments, **chosen)).run([calls])
    assert len(ran) == 3


def test_the_window_of_a_merged_list_works_once_it_has_admitted_all() -> None:
    """Two blocks: both are seen to run tiles, since each tile of the second call waits for the other."""
    segments, both = Segments(), threading.Barrier(2)
    calls = chain(segments, [lambda tile: None, lambda tile: both.wait(30.0)], tiles=2)
    ThreadedDevice(Options(segments=segments, merged=True, hazards="device"), workers=1).run([calls])
    assert both.n_waiting == 0
    assert not both.broken


@pytest.mark.parametrize("ready", [False, True])
@pytest.mark.parametrize("merged", [False, True])
def test_a_window_that_never_empties_is_named(merged: bool, ready: bool) -> None:
    segments = Segments()
    calls = chain(segments, [lambda tile: None] * 3, tiles=1)
    options = Options(segments=segments, window=1, watchdog=0.2, merged=merged, ready=ready, hazards="device")
    with pytest.raises(CallError, match=r"waited 0\.2 s (for a slot of the window|for the window to admit it)"):
        ThreadedDevice(options, lose=0).run([calls])


@pytest.mark.sanitizer
@pytest.mark.parametrize("form", ["known", "known merged", "classes", "merged", "ready"])
def test_the_protocol_has_no_races(form: str) -> None:
    library = build(("-g", "-fsanitize=thread"))
    program = """
import sys
from pathlib import Path
from typing import Any
from simengine_scheduler import Options
from simengine_scheduler.testing.threaded_device import ThreadedDevice
from tests.scheduler.device.programs import random_program

for seed in range(10):
    program = random_program(seed)
    forms = {form: True for form in ("merged", "ready") if form in sys.argv[2]}
    hazards = "host" if "known" in sys.argv[2] else "device"
    options = Options(segments=program.segments, window=4, watchdog=60.0, hazards=hazards, **forms)
    ThreadedDevice(options, 3, library=Path(sys.argv[1])).run([program.calls])
"""
    flags = {"LD_PRELOAD": _tsan(), "TSAN_OPTIONS": "halt_on_error=1 ignore_noninstrumented_modules=1"}
    found = subprocess.run(
        [sys.executable, "-c", program, str(library), form],
        env={**os.environ, **flags},
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stderr[-3000:]


def _tsan() -> str:
    return subprocess.run(
        ["g++", "-print-file-name=libtsan.so"], capture_output=True, text=True, check=True
    ).stdout.strip()
