"""Lists that the host names to a window that runs: fixed lists, calls one by one, counts, sessions that leave."""

from __future__ import annotations

import random
import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simengine_scheduler import AwaitCounts, CallError, FixedList, KernelCall, Segments, validate
from simengine_scheduler.core import IDLE
from simengine_scheduler.device import book, ring
from simengine_scheduler.executors.base import Options, run_repeatedly
from simengine_scheduler.testing.threaded_device import PythonBody, ThreadedDevice
from tests.scheduler.device.programs import random_program

WINDOWS = st.sampled_from((1, 2, 5, 32, 64))


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    window=WINDOWS,
    workers=st.integers(1, 5),
    merged=st.booleans(),
    rounds=st.integers(1, 4),
    length=st.integers(1, 90),
)
def test_fixed_lists_leave_the_results_of_serial_in_every_round(
    seed: int, window: int, workers: int, merged: bool, rounds: int, length: int
) -> None:
    program = random_program(seed, length)
    options = Options(segments=program.segments, window=window, merged=merged, watchdog=30.0)
    executor = ThreadedDevice(options, workers)
    calls = FixedList(program.calls)
    run_repeatedly(executor, [calls], rounds)
    executor.run([calls])
    got = program.data.copy()
    np.testing.assert_array_equal(got, program.expected(program.calls * (rounds + 1)))
    executor.close()


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32), lists=st.integers(2, 70), window=WINDOWS, workers=st.integers(1, 4))
def test_lists_of_which_random_ones_pause_run_in_one_session(seed: int, lists: int, window: int, workers: int) -> None:
    draw, segments, data = random.Random(seed), Segments(), np.zeros(lists)

    def call(k: int, add: float) -> KernelCall:
        def body(tile: int) -> None:
            data[k] = data[k] * 0.5 + add

        return KernelCall(f"list {k}", PythonBody(body), (), (), (segments.intern(f"x{k}"),))

    fixed = [FixedList([call(k, j) for j in range(draw.randint(1, 4))]) for k in range(lists)]
    executor = ThreadedDevice(Options(segments=segments, window=window, watchdog=30.0), workers)
    wanted = np.zeros(lists)
    executor.run(fixed)
    described = len(executor.host.book.calls)
    present = [set(range(lists)), *(set(draw.sample(range(lists), draw.randint(0, lists))) for _ in range(4))]
    for here in present[1:]:
        executor.run([fixed[k] for k in sorted(here)])
    for here in present:
        for k in here:
            for j in range(len(fixed[k])):
                wanted[k] = wanted[k] * 0.5 + j
    np.testing.assert_array_equal(data, wanted)
    assert len(executor.host._sessions) == 1
    assert len(executor.host.book.calls) == described
    executor.close()


def test_fixed_lists_that_conflict_run_in_program_order() -> None:
    for seed in range(5):
        program = random_program(seed)
        lists = [FixedList(program.calls[:15]), FixedList(program.calls[15:])]
        executor = ThreadedDevice(Options(segments=program.segments, watchdog=30.0, record="order"), 3)
        order = executor.run(lists).order
        program.expected(order)  # clears the fields
        plain = ThreadedDevice(Options(segments=program.segments, watchdog=30.0), 3)
        plain.run(lists)
        got = program.data.copy()
        np.testing.assert_array_equal(got, program.expected(order))
        run_repeatedly(plain, lists, 3)
        got = program.data.copy()
        np.testing.assert_array_equal(got, program.expected(order * 3))


@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 2**32), window=WINDOWS, workers=st.integers(1, 4), record=st.sampled_from(("off", "order")))
def test_emitters_that_wait_for_counts_are_told_while_the_session_runs(
    seed: int, window: int, workers: int, record: str
) -> None:
    program = random_program(seed, 60)
    draw, seen = random.Random(seed), []

    def emitter(calls):  # type: ignore[no-untyped-def]
        for call in calls:
            yield call
            if draw.random() < 0.2:
                yield AwaitCounts(call)
                seen.append(call)

    options = Options(segments=program.segments, window=window, watchdog=30.0, record=record)
    executor = ThreadedDevice(options, workers)
    order = []

    def noting(calls):  # type: ignore[no-untyped-def]
        for item in emitter(calls):
            if isinstance(item, KernelCall):
                order.append(item)
            yield item

    trace = executor.run([noting(program.calls[i::3]) for i in range(3)])
    got = program.data.copy()
    np.testing.assert_array_equal(got, program.expected(order))
    assert trace.counters.awaits == len(seen)
    if record == "order":
        assert validate(trace.order, trace, program.segments) == []
    executor.close()


def test_a_number_that_is_awaited_is_there_when_the_emitter_goes_on() -> None:
    segments, found = Segments(), []
    first, slow = segments.intern("first"), segments.intern("slow")
    release = threading.Event()
    count = KernelCall("count", PythonBody(lambda tile: found.append(7)), (), (first,))
    other = KernelCall("slow", PythonBody(lambda tile: release.wait(30.0)), (), (slow,))

    def emitter():  # type: ignore[no-untyped-def]
        yield count
        yield AwaitCounts(count)
        found.append(found[-1] + 1)
        release.set()  # `slow` ends only now: the wait was for `count` alone

    executor = ThreadedDevice(Options(segments=segments, watchdog=60.0), 3)
    executor.run([[other], emitter()])
    assert found == [7, 8]
    executor.close()


def test_a_session_leaves_while_the_host_is_busy_and_comes_back() -> None:
    segments, ran = Segments(), []
    calls = [
        KernelCall(f"c{i}", PythonBody(lambda tile, i=i: ran.append(i)), (), (), (segments.intern("x"),))
        for i in range(6)
    ]

    def emitter():  # type: ignore[no-untyped-def]
        for call in calls:
            yield call
            yield AwaitCounts(call)
            if call in calls[1:3]:
                while executor.host.machine.is_running():  # as work that finds no room beside the workers
                    time.sleep(0.001)

    executor = ThreadedDevice(Options(segments=segments, record="order"), 2)
    trace = executor.run([emitter()])
    assert ran == list(range(6))
    assert executor.host.started >= 3
    assert validate(trace.order, trace, segments) == []
    executor.close()


def test_bodies_of_a_new_class_in_the_middle_of_a_run() -> None:
    segments, ran = Segments(), []
    x = segments.intern("x")
    kinds = [32, 32, 128, 32, 64]
    calls = [
        KernelCall(f"c{i}", PythonBody(lambda tile, i=i: ran.append(i), threads=threads), (), (), (x,))
        for i, threads in enumerate(kinds)
    ]

    def emitter():  # type: ignore[no-untyped-def]
        for call in calls:
            yield call
            yield AwaitCounts(calls[0])

    for record in ("off", "order"):
        ran.clear()
        executor = ThreadedDevice(Options(segments=segments, record=record), 2)
        trace = executor.run([emitter()])
        assert ran == [0, 1, 2, 3, 4]
        assert record == "off" or validate(trace.order, trace, segments) == []
        executor.close()


def test_books_that_are_full_or_outdated_are_begun_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(book._ROOM, "tasks", 70)
    segments, total = Segments(), np.zeros(1)

    def add(tile: int) -> None:
        total[0] += 1

    x = segments.intern("x")
    executor = ThreadedDevice(Options(segments=segments), 2)
    for k in range(5):
        part = segments.intern("x", 0, ("size", k))
        calls = [KernelCall(f"c{i}", PythonBody(add), (), (), (x if i % 2 else part,)) for i in range(50)]
        executor.run([iter(calls)])
        executor.run([FixedList(calls[:9])])
    assert total[0] == 5 * 59
    executor.close()


def test_lists_that_are_larger_than_a_book_make_it_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(book._ROOM, "tasks", 16)
    segments, total = Segments(), np.zeros(1)

    def add(tile: int) -> None:
        total[0] += 1

    where = (segments.intern("x"),)
    executor = ThreadedDevice(Options(segments=segments), 2)
    executor.run([FixedList([KernelCall("c", PythonBody(add), (), (), where) for _ in range(100)])])
    assert total[0] == 100
    body = PythonBody(add)
    many = FixedList([KernelCall("c", body, (), (), where) for _ in range(16 * 256 + 1)])
    with pytest.raises(ValueError, match="no room for so many calls at once"):
        executor.run([many])
    executor.close()


def test_idle_emitters_are_asked_while_others_wait() -> None:
    segments, events = Segments(), []
    gate = threading.Event()
    slow = KernelCall("slow", PythonBody(lambda tile: gate.wait(30.0)), (), (), (segments.intern("x"),))
    quick = KernelCall("quick", PythonBody(lambda tile: gate.set()), (), (), (segments.intern("y"),))

    def waits():  # type: ignore[no-untyped-def]
        yield slow
        yield AwaitCounts(slow)
        events.append("told")

    def idles():  # type: ignore[no-untyped-def]
        for _ in range(50):
            yield IDLE
        yield quick

    executor = ThreadedDevice(Options(segments=segments, watchdog=60.0), 2)
    gate.set()
    executor.run([[slow, quick]])  # a body that no worker has would end the session, and wait for `slow`
    gate.clear()
    executor.run([waits(), idles()])
    assert events == ["told"]
    assert gate.is_set()
    executor.close()


def test_the_ring_goes_round(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("simengine_scheduler.device.ring.SIZE", "simengine_scheduler.device.sessions.SIZE"):
        monkeypatch.setattr(name, 32)
    segments, total = Segments(), np.zeros(1)

    def add(tile: int) -> None:
        total[0] += 1

    call = KernelCall("add", PythonBody(add), (), (), (segments.intern("x"),))
    executor = ThreadedDevice(Options(segments=segments), 2)
    for _ in range(3):
        executor.run([iter([call] * 100)])
        run_repeatedly(executor, [FixedList([call])], 50)
    assert total[0] == 450
    assert ring.SIZE == 32
    executor.close()


def test_an_error_of_an_emitter_ends_the_session_and_the_next_run_is_whole() -> None:
    segments, ran = Segments(), []
    call = KernelCall("c", PythonBody(ran.append), (), (), (segments.intern("x"),))

    def broken():  # type: ignore[no-untyped-def]
        yield call
        yield AwaitCounts(call)
        raise FloatingPointError("no number")

    executor = ThreadedDevice(Options(segments=segments), 2)
    with pytest.raises(FloatingPointError):
        executor.run([broken()])
    assert not executor.host.machine.is_running()
    executor.run([[call, call]])
    assert len(ran) == 3
    executor.close()


def test_an_executor_runs_on_after_a_list_was_given_up() -> None:
    segments, ran = Segments(), []
    x = segments.intern("x")
    slow = KernelCall("slow", PythonBody(lambda tile: time.sleep(1.0)), (), (), (x,))
    quick = KernelCall("quick", PythonBody(ran.append), (), (), (x,))
    executor = ThreadedDevice(Options(segments=segments, watchdog=0.2), 2)
    for lists in ([FixedList([slow, quick])], [[slow, quick]]):
        with pytest.raises(
            CallError, match=r"call 'quick'(, tile 0,)? waited 0\.2 s for call 'slow', which has not ended"
        ):
            executor.run(lists)
        ran.clear()
        executor.run([FixedList([quick, quick])])
        executor.run([[quick]])
        assert len(ran) == 3
    executor.close()
