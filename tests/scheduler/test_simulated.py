"""The simulated executor: legal orders in virtual time under every model, the bits of serial, and plausible times."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simengine_scheduler import (
    AwaitCounts,
    CallError,
    Executor,
    FixedList,
    KernelCall,
    PythonLaunch,
    Segments,
    make_executor,
    validate,
)
from simengine_scheduler.core.hazards import conflict
from simengine_scheduler.gpu_model import GpuSpec, LaunchShape, ListRecorder, RecordedList
from simengine_scheduler.gpu_model.simulated import MODELS
from tests.scheduler.gpu_model.machines import US, Lists, machine, with_host
from tests.scheduler.programs import Program, Spec, run_and_check, specs
from tests.scheduler.simulated_lists import USUAL, fan, simulated

VARIANTS = [{"completion": "polling"}, {"stream_policy": "kesco"}, {"stream_policy": "opara"}]
WAYS = [*((model, {}) for model in MODELS), *(("streams", options) for options in VARIANTS)]
ways = pytest.mark.parametrize(("model", "options"), WAYS, ids=["-".join([m, *o.values()]) for m, o in WAYS])
FREE = with_host(machine(multiprocessors=64, tiles=16), listed=1000)
"""A machine without costs, on which all blocks fit at once."""


def random_list(emitters: list[list[Spec]], seconds: list[int], blocks: int) -> RecordedList:
    """A list with the hazards and awaits of a program, and durations and shapes drawn for it."""
    program = Program(emitters)
    recorder = ListRecorder(make_executor("serial", record="times"), program.segments)
    recorder.run(program.emitters())
    found = recorder.result()
    calls = tuple(
        call._replace(seconds=US * seconds[n % len(seconds)], shape=LaunchShape(1 + n * blocks % 300, 128, 40, 2048))
        for n, call in enumerate(found.calls)
    )
    return replace(found, calls=calls)


def critical_path(order: list[Any], recorded: RecordedList) -> float:
    """The longest chain of durations in a program order [s]; awaits are left out."""
    ends = list[float]()
    for n, call in enumerate(order):
        before = [ends[i] for i in range(n) if conflict(order[i], call, recorded.segments.conflicts)]
        ends.append(max(before, default=0.0) + call.launch.seconds)
    return max(ends, default=0.0)


@ways
@settings(max_examples=12, deadline=None)
@given(st.sampled_from(["h200", "rtx3060", FREE]), specs(), st.sampled_from([1, 3, 32]), st.integers(1, 4))
def test_bodies_run_in_a_legal_order_with_the_bits_of_program_order(
    model: str, options: dict[str, Any], gpu: str | GpuSpec, emitters: list[list[Spec]], window: int, streams: int
) -> None:
    program = Program(emitters)
    executor = simulated(program.segments, model, gpu, window=window, streams=streams, **options)
    for _ in range(2):
        run_and_check(program, executor)
    executor.close()


@ways
@settings(max_examples=8, deadline=None)
@given(specs(), st.lists(st.integers(0, 40), min_size=1, max_size=5), st.integers(0, 99))
def test_recorded_lists_obey_hazards_by_the_clock_and_repeat_themselves(
    model: str, options: dict[str, Any], emitters: list[list[Spec]], seconds: list[int], blocks: int
) -> None:
    recorded = random_list(emitters, seconds, blocks)
    traces = []
    for _ in range(2):
        executor = simulated(recorded.segments, model, **options)
        trace = executor.run(recorded.emitters())
        assert validate(trace.order, trace, recorded.segments) == []
        assert sorted(c.name for c in trace.order) == sorted(c.name for c in recorded.calls)
        assert all(e.issue <= e.start <= e.end for e in trace.events)
        assert trace.span() >= critical_path(trace.order, recorded) * (1 - 1e-9)
        traces.append(trace)
        executor.close()
    assert traces[0].events == traces[1].events
    assert traces[0].log == traces[1].log


@pytest.mark.parametrize("model", [m for m in MODELS if m not in ("serial", "pipeline")])  # whose jobs are in order
@settings(max_examples=10, deadline=None)
@given(specs(awaits=False), st.lists(st.integers(0, 40), min_size=1, max_size=5))
def test_without_costs_and_limits_a_list_takes_its_critical_path(
    model: str, emitters: list[list[Spec]], seconds: list[int]
) -> None:
    recorded = random_list(emitters, seconds, 0)
    executor = simulated(recorded.segments, model, FREE, window=1000, streams=40)
    trace = executor.run(recorded.emitters())
    assert executor.now == pytest.approx(critical_path(trace.order, recorded), abs=1e-12)
    executor.close()


@settings(max_examples=10, deadline=None)
@given(specs(), st.lists(st.integers(0, 40), min_size=1, max_size=5))
def test_without_costs_serial_takes_the_sum(emitters: list[list[Spec]], seconds: list[int]) -> None:
    recorded = random_list(emitters, seconds, 0)
    executor = simulated(recorded.segments, "serial", FREE)
    executor.run(recorded.emitters())
    assert executor.now == pytest.approx(recorded.seconds(), abs=1e-12)


@pytest.mark.parametrize("model", ["streams", "acs-sw", "acs-hw", "device"])
def test_more_of_everything_never_hurts_a_fan_of_chains(model: str) -> None:
    recorded = fan(8, 12, 20.0, fixed=model != "streams")  # whose window does not hold calls of fixed lists

    def span(**options: Any) -> float:
        executor = simulated(recorded.segments, model, **{"streams": 8, "window": 64, **options})
        return float(executor.run(recorded.emitters()).span())

    by_streams = [span(streams=n) for n in (1, 2, 4, 8, 16)]
    by_window = [span(window=n) for n in (1, 4, 16, 64, 128)]
    by_size = [span(gpu=replace(USUAL, multiprocessors=n)) for n in (1, 2, 8, 132)]
    for spans in (by_streams, by_window, by_size):
        assert all(more <= less * 1.02 for less, more in pairwise(spans)), spans
    if model in ("streams", "acs-sw"):
        assert by_streams[3] < 0.4 * by_streams[0]
    if model != "device":  # whose window is its number of blocks
        assert by_window[-1] < by_window[0]


@ways
def test_costs_of_launching_make_everything_slower(model: str, options: dict[str, Any]) -> None:
    recorded = fan(4, 10, 3.0)
    found = []
    for launch in (0.0, 3e-6, 9e-6):
        gpu = with_host(USUAL, launch=launch, launch_graph=launch, launch_workers=launch, send=launch)
        executor = simulated(recorded.segments, model, gpu, **options)
        executor.run(recorded.emitters())
        found.append(executor.now)
    assert found[0] < found[1] < found[2]


def test_a_chain_is_worked_out_by_hand() -> None:
    lists = Lists()
    lists.add("", "x", 5.0)
    lists.wait(lists.add("x", "y", 5.0))
    lists.add("y", "", 2.0)
    recorded = lists.build()
    costs = {"dispatch": 3 * US, "chain": 1 * US, "crossing": 2 * US, "visible": 1 * US, "interconnect": 4 * US}
    gpu = with_host(machine(**costs, release=2 * US), launch=2 * US, notify=6 * US, keep=1 * US)

    def ends(model: str, **options: Any) -> list[float]:
        trace = simulated(recorded.segments, model, gpu, **options).run(recorded.emitters())
        return [round(e.end / US, 6) for e in sorted(trace.events)]

    # launched at 3 and 6, there at 6: 6-11, 12-17; seen at 18, the third launched at 21 and there at 24
    assert ends("serial") == [11.0, 17.0, 26.0]
    assert ends("streams") == [11.0, 17.0, 26.0]
    # no cost on the host here: there at 3, and 2 behind the event of the home stream; seen at 16, the other there at 19
    assert ends("graph") == [10.0, 15.0, 21.0]
    # taken in at 1, launched at 3, there at 6; seen and known 7 after each end, then another 2 + 3
    assert ends("acs-sw") == [11.0, 28.0, 43.0]
    # sent at 1 and 2, there at 5 and 6; the host sees the second's end 4 later, needs 1, and the way takes 4
    assert ends("acs-hw") == [10.0, 15.0, 26.0]
    # as the graph, but that each step to a waiting call costs 2
    assert ends("device") == [10.0, 17.0, 23.0]


def python_call(name: str, body: Any, writes: tuple[int, ...]) -> KernelCall:
    return KernelCall(name, PythonLaunch(body), (), writes)


@ways
def test_a_body_that_fails_is_named_and_the_executor_goes_on(model: str, options: dict[str, Any]) -> None:
    table, done = Segments(), list[str]()
    x = (table.intern("x"),)
    good = [python_call(f"g{i}", lambda: done.append("x"), x) for i in range(3)]
    bad = python_call("bad", lambda: 1 / 0, x)
    executor: Executor = simulated(table, model, **options)
    with pytest.raises(CallError, match="call 'bad' .* under executor 'simulated': ZeroDivisionError") as caught:
        executor.run([[good[0], bad, *good[1:]]])
    assert caught.value.call is bad
    assert len(done) == 1
    trace = executor.run([good])
    executor.synchronize()
    assert len(done) == 4
    assert validate(good, trace, table) == []


@ways
def test_an_emitter_that_raises_passes_through(model: str, options: dict[str, Any]) -> None:
    table, closed, done = Segments(), list[int](), list[int]()
    call = python_call("k", lambda: done.append(1), (table.intern("x"),))

    def other() -> Iterator[KernelCall | AwaitCounts]:
        try:
            while True:
                yield call
                yield AwaitCounts(call)
        finally:
            closed.append(1)

    def failing() -> Iterator[KernelCall]:
        yield call
        raise KeyError("lost")

    executor = simulated(table, model, **options)
    with pytest.raises(KeyError, match="lost"):
        executor.run([other(), failing()])
    assert closed == [1]
    done.clear()
    executor.run([[call]])
    executor.synchronize()
    assert done == [1]


@ways
def test_runs_without_a_record_still_take_their_time(model: str, options: dict[str, Any]) -> None:
    recorded = fan(3, 4, 5.0)
    quiet = simulated(recorded.segments, model, record="off", **options)
    trace = quiet.run(recorded.emitters())
    quiet.synchronize()
    loud = simulated(recorded.segments, model, **options)
    loud.run(recorded.emitters())
    assert (trace.record, trace.events, trace.counters.calls) == ("off", [], 12)
    assert quiet.now == pytest.approx(loud.now, rel=0.05 if model == "pipeline" else 1e-6)  # which then makes no graphs
    assert quiet.now > 20 * US
    begin = quiet.now
    quiet.repeat(recorded.emitters(), 3)
    quiet.synchronize()
    assert 60 * US < quiet.now - begin < 3.2 * begin


def test_rounds_are_those_of_the_modelled_executor() -> None:
    table = Segments()
    several = [model for model in MODELS if simulated(table, model, record="off").rounds > 1]
    assert sorted(several) == ["graph-cached", "streams"]
    assert simulated(table, "graph-cached").rounds == 1  # recorded, it goes round by round


@pytest.mark.parametrize("model", ["acs-sw", "acs-hw"])
def test_calls_of_a_fixed_list_are_made_before_the_run(model: str) -> None:
    recorded = fan(1, 4, 1.0)
    gpu = with_host(machine(), emit=10 * US)
    (fixed,) = recorded.emitters()
    for emitter, us in ((list(fixed), 41.0), (fixed, 4.0)):  # a chain of four
        executor = simulated(recorded.segments, model, gpu)
        executor.run([emitter])
        assert executor.now == pytest.approx(us * US)


def test_what_cannot_be_simulated_is_refused() -> None:
    table = Segments()
    with pytest.raises(ValueError, match="model='abacus' is unknown; choose one of serial, streams"):
        simulated(table, "abacus")

    class Cuda(PythonLaunch):
        grid = (1, 1, 1)

    call = KernelCall("k", Cuda(lambda: None), (), (table.intern("x"),))
    with pytest.raises(TypeError, match="call 'k' is a CUDA kernel, which virtual time cannot run; record its list"):
        simulated(table, "streams").run([FixedList([call])])
    with pytest.raises(TypeError, match="single KernelCall"):
        simulated(table, "streams").run(call)
    lists = Lists()
    lists.add("", "x", 1.0, LaunchShape(1, 4096))
    recorded = lists.build()
    for model in MODELS:
        with pytest.raises((ValueError, CallError), match="does not fit a multiprocessor of 'usual'"):
            simulated(recorded.segments, model).run(recorded.emitters())


def test_traces_are_pictures_too(tmp_path: Path) -> None:
    recorded = fan(4, 3, 5.0)
    trace = simulated(recorded.segments, "acs-hw").run(recorded.emitters())
    trace.to_chrome(tmp_path / "trace.json")
    assert trace.concurrency() > 2
    assert 0 <= trace.idle_share() < 0.5
    assert trace.counters.calls == 12


def test_a_list_of_two_thousand_calls_takes_about_a_second() -> None:
    recorded = fan(8, 250, 20.0)
    begin = time.perf_counter()
    simulated(recorded.segments, "streams").run(recorded.emitters())
    assert time.perf_counter() - begin < 8.0  # 0.7 on one core of its own
