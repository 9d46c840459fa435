"""Host executors: legal orders, the bits of program order, awaits, failures, reuse."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simengine_scheduler import (
    AwaitCounts,
    CallError,
    FixedList,
    KernelCall,
    PythonLaunch,
    Segments,
    make_executor,
    validate,
)
from simengine_scheduler.executors import run_repeatedly
from tests.scheduler.programs import Program, Spec, run_and_check, specs

WINDOWS = st.sampled_from([1, 2, 32])


def python_call(name: str, body: Any, reads: tuple[int, ...] = (), writes: tuple[int, ...] = ()) -> KernelCall:
    return KernelCall(name, PythonLaunch(body), reads, writes)


@settings(max_examples=80, deadline=None)
@given(specs())
def test_serial(emitters: list[list[Spec]]) -> None:
    program = Program(emitters)
    run_and_check(program, make_executor("serial", record="order"))


@settings(max_examples=80, deadline=None)
@given(specs(), WINDOWS, st.integers(0, 9))
def test_shuffled(emitters: list[list[Spec]], window: int, seed: int) -> None:
    program = Program(emitters)
    executor = make_executor("shuffled", segments=program.segments, window=window, seed=seed, record="order")
    for _ in range(2):
        run_and_check(program, executor)


@settings(max_examples=50, deadline=None)
@given(specs(), WINDOWS, st.integers(1, 4), st.sampled_from(["fifo", "lifo", "critical"]))
def test_threads(emitters: list[list[Spec]], window: int, workers: int, policy: str) -> None:
    program = Program(emitters)
    executor = make_executor(
        "threads", segments=program.segments, window=window, workers=workers, policy=policy, record="times"
    )
    try:
        for _ in range(2):
            run_and_check(program, executor)
    finally:
        executor.close()


@settings(max_examples=40, deadline=None)
@given(specs(), st.integers(0, 9))
def test_one_emitter_gives_the_bits_of_serial(emitters: list[list[Spec]], seed: int) -> None:
    """With one emitter program order is fixed, awaits and branches included."""
    program = Program(emitters[:1])
    expected = run_and_check(program, make_executor("serial", record="order"))
    for name in ("shuffled", "threads"):
        executor = make_executor(name, segments=program.segments, seed=seed, workers=2, record="order")
        assert run_and_check(program, executor) == expected
        executor.close()


def test_shuffled_really_shuffles_and_follows_its_seed() -> None:
    table = Segments()
    calls = [python_call(str(k), lambda: None, writes=(table.intern(f"b{k}"),)) for k in range(12)]

    def orders(seed: int) -> list[list[int]]:
        executor = make_executor("shuffled", segments=table, seed=seed, record="order")
        return [[e.seq for e in executor.run([calls]).events] for _ in range(3)]

    first = orders(1)
    assert first == orders(1)
    assert first != orders(2)
    assert len({tuple(o) for o in first}) == 3
    assert all(sorted(o) == list(range(12)) for o in first)


def test_round_robin_is_program_order() -> None:
    calls = [[python_call(f"{e}{k}", lambda: None) for k in range(3)] for e in range(2)]
    trace = make_executor("serial", record="order").run([calls[0], iter(calls[1])])
    assert [c.name for c in trace.order] == ["00", "10", "01", "11", "02", "12"]


def test_threads_run_together_and_bound_by_the_window() -> None:
    table = Segments()
    barrier = threading.Barrier(3, timeout=20)
    calls = [python_call(str(k), barrier.wait, writes=(table.intern(f"b{k}"),)) for k in range(3)]
    executor = make_executor("threads", segments=table, workers=3, record="times")
    trace = executor.run([calls])  # passes the barrier only if all three run at once
    assert trace.concurrency() > 1
    assert {e.stream for e in trace.events} == {0, 1, 2}
    executor.close()
    running: list[int] = []
    most: list[int] = []

    def body() -> None:
        running.append(1)
        most.append(len(running))
        time.sleep(0.002)
        running.pop()

    calls = [python_call(str(k), body, writes=(table.intern(f"c{k}"),)) for k in range(10)]
    executor = make_executor("threads", segments=table, workers=4, window=2)
    executor.run([calls])
    assert max(most) <= 2
    executor.close()


@pytest.mark.parametrize("name", ["serial", "shuffled", "threads"])
def test_await_resumes_after_the_latest_instance_while_others_go_on(name: str) -> None:
    table = Segments()
    seen: list[int] = []
    total = [0]

    def count() -> None:
        total[0] += 1

    counting = python_call("count", count, writes=(table.intern("n"),))
    other = [python_call(f"other{k}", lambda: None, writes=(table.intern(f"o{k}"),)) for k in range(20)]

    def emitter() -> Iterator[KernelCall | AwaitCounts]:
        for k in range(5):
            yield counting
            yield counting
            yield AwaitCounts(counting)
            seen.append(total[0])
            assert total[0] == 2 * (k + 1)

    executor = make_executor(name, segments=table, workers=3, record="order")
    trace = executor.run([emitter(), other])
    assert seen == [2, 4, 6, 8, 10]
    assert trace.counters.awaits == 5
    assert validate(trace.order, trace, table) == []
    executor.close()


@pytest.mark.parametrize("name", ["serial", "shuffled", "threads"])
@pytest.mark.parametrize("window", [1, 2, 32])
def test_a_call_that_raises_is_named_and_nothing_follows(name: str, window: int) -> None:
    table = Segments()
    x = table.intern("x")
    ran: list[str] = []
    closed: list[bool] = []

    def fail() -> None:
        raise FloatingPointError("no convergence")

    good = python_call("good", lambda: ran.append("good"), writes=(x,))
    bad = python_call("bad", fail, writes=(x,))
    after = python_call("after", lambda: ran.append("after"), reads=(x,))

    def emitter() -> Iterator[KernelCall]:
        try:
            yield good
            yield bad
            while True:
                yield after
        finally:
            closed.append(True)

    executor = make_executor(name, segments=table, window=window, workers=3, record="order")
    for attempt in range(2):
        with pytest.raises(
            CallError, match=r"call 'bad' .* failed under executor .*FloatingPointError: no convergence"
        ) as info:
            executor.run([emitter()])
        assert info.value.call is bad
        assert isinstance(info.value.cause, FloatingPointError)
        assert ran == ["good"] * (attempt + 1)
        assert len(closed) == attempt + 1
    trace = executor.run([[good, after]])  # usable again
    assert validate(trace.order, trace, table) == []
    assert ran[-1] == "after"
    executor.close()


def test_calls_that_run_when_another_fails_are_waited_for() -> None:
    table = Segments()
    ended: list[bool] = []
    started = threading.Event()

    def slow() -> None:
        started.set()
        time.sleep(0.05)
        ended.append(True)

    def fail() -> None:
        started.wait(20)
        raise OSError("gone")

    calls = [
        python_call("slow", slow, writes=(table.intern("a"),)),
        python_call("fail", fail, writes=(table.intern("b"),)),
        python_call("never", lambda: ended.append(False), reads=(table.intern("a"),)),
    ]
    executor = make_executor("threads", segments=table, workers=2)
    with pytest.raises(CallError, match="'fail'"):
        executor.run([calls])
    assert ended == [True]
    executor.close()


@pytest.mark.parametrize("name", ["serial", "shuffled", "threads"])
def test_an_emitter_that_raises_passes_through(name: str) -> None:
    table = Segments()
    call = python_call("fine", lambda: None, writes=(table.intern("a"),))

    def emitter() -> Iterator[KernelCall]:
        yield call
        raise LookupError("world 3 is not finite")

    executor = make_executor(name, segments=table, workers=2)
    with pytest.raises(LookupError, match="world 3"):
        executor.run([emitter(), [call] * 5])
    assert executor.run([[call]]).counters.calls == 1
    executor.close()


def test_what_run_refuses() -> None:
    table = Segments()
    call = python_call("c", lambda: None, writes=(table.intern("a"),))
    executor = make_executor("serial")
    with pytest.raises(TypeError, match=r"run\(\[calls\]\)"):
        executor.run([call, call])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="single KernelCall"):
        executor.run(call)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="yielded a str"):
        executor.run([["not a call"]])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="awaits call 'c', which it has not yielded"):
        executor.run([[AwaitCounts(call)]])
    other = Segments()
    shuffled = make_executor("shuffled", segments=other)
    with pytest.raises(ValueError, match="names segment 0, but the table holds 0"):
        shuffled.run([[call]])


def test_threads_refuse_concurrent_and_closed_use() -> None:
    table = Segments()
    executor = make_executor("threads", segments=table, workers=2)
    nested: list[str] = []

    def again() -> None:
        with pytest.raises(RuntimeError, match="running already"):
            executor.run([[]])
        nested.append("refused")

    executor.run([[python_call("outer", again, writes=(table.intern("a"),))]])
    assert nested == ["refused"]
    executor.close()
    with pytest.raises(RuntimeError, match="closed"):
        executor.run([[]])


def test_a_thread_that_wakes_after_its_run_has_ended_leaves_the_next_run_alone() -> None:
    table = Segments()
    executor: Any = make_executor("threads", segments=table, workers=2, record="order")
    work = executor._pool._work
    on_its_way, late, gone = threading.Event(), threading.Event(), threading.Event()

    def held_back(run: Any, worker: int) -> None:
        if worker == 1 and not gone.is_set():
            on_its_way.set()
            late.wait(20)
            work(run, worker)
            gone.set()
        else:
            work(run, worker)

    executor._pool._work = held_back
    quick = python_call("quick", lambda: on_its_way.wait(20), writes=(table.intern("a"),))
    executor.run([[quick]])  # ends while the thread is still on its way into it

    def let_go() -> None:
        late.set()
        assert gone.wait(20)

    calls = [python_call("let go", let_go, writes=(table.intern("b"),)), quick]
    trace = executor.run([calls])
    assert validate(calls, trace, table) == []
    executor.close()


def test_a_dropped_threads_executor_ends_its_threads() -> None:
    before = threading.active_count()
    executor = make_executor("threads", segments=Segments(), workers=3)
    executor.run([[]])
    assert threading.active_count() == before + 2
    del executor
    assert threading.active_count() == before


def test_an_executor_closes_itself_at_the_end_of_a_with_block() -> None:
    before = threading.active_count()
    with make_executor("threads", segments=Segments(), workers=3) as executor:
        executor.run([[]])
        assert threading.active_count() == before + 2
    assert threading.active_count() == before


def test_an_executor_closes_itself_when_the_block_raises() -> None:
    before = threading.active_count()
    call = python_call("fails", lambda: [][0], writes=())
    with pytest.raises(CallError), make_executor("threads", segments=Segments(), workers=3) as executor:
        executor.run([[call]])
    assert threading.active_count() == before


def test_misspelt_names_are_answered_with_the_nearest() -> None:
    with pytest.raises(ValueError, match=r"unknown executor 'thread'; .*\(the nearest is 'threads'\)"):
        make_executor("thread")
    with pytest.raises(TypeError, match=r"unknown executor option 'stream_polcy'; .*the nearest is 'stream_policy'"):
        make_executor("streams", stream_polcy="follow")
    with pytest.raises(ValueError, match=r"policy='lfio' is unknown; choose one of fifo, lifo, critical \(the nearest"):
        make_executor("threads", policy="lfio")
    with pytest.raises(ValueError, match=r"record='xyz' is unknown; choose one of off, order, times$"):
        make_executor("serial", record="xyz")


def test_options_are_checked() -> None:
    with pytest.raises(ValueError, match="unknown executor 'graf'; choose one of auto, device, graph, "):
        make_executor("graf")
    with pytest.raises(
        TypeError, match="unknown executor option 'widow'; choose one of segments, .*the nearest is 'window'"
    ):
        make_executor("serial", widow=3)
    with pytest.raises(ValueError, match="window=0 is too small"):
        make_executor("serial", window=0)
    with pytest.raises(ValueError, match="depth=0 is too small"):
        make_executor("serial", depth=0)
    with pytest.raises(ValueError, match="stream_policy='kesko' is unknown; choose one of follow, .*kesco, opara"):
        make_executor("serial", stream_policy="kesko")
    with pytest.raises(ValueError, match="policy='fif' is unknown; choose one of fifo"):
        make_executor("serial", policy="fif")
    with pytest.raises(ValueError, match="executor 'threads' checks hazards and needs the segments table"):
        make_executor("threads")


def test_lists_are_run_repeatedly_by_executors_without_a_way_of_their_own() -> None:
    table, ran = Segments(), list[str]()
    calls = FixedList([python_call(k, lambda k=k: ran.append(k), writes=(table.intern("a"),)) for k in "xy"])
    trace = run_repeatedly(make_executor("threads", segments=table, workers=1, record="order"), [calls], 3)
    assert ran == ["x", "y"] * 3
    assert trace.order == list(calls)
