"""Compiled code issues on the GPU model as it does on CUDA, and virtual time says what that takes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from simengine_scheduler import CallError, KernelCall, PythonLaunch, Segments, make_executor, validate
from simengine_scheduler.core import Arrival, AwaitCounts, Counted, CountedList, Item
from simengine_scheduler.gpu_model import GpuSpec, gpu_named
from simengine_scheduler.gpu_model.simulated import SimulatedExecutor
from simengine_scheduler.native.compiling import compiler
from tests.scheduler.gpu_model.machines import FREE_HOST, US, machine, with_host

pytestmark = pytest.mark.skipif(compiler() is None, reason="compiled code needs a compiler")
ISSUED: GpuSpec = machine(host=replace(FREE_HOST, compiled=True, query=0.1 * US), shortest=1 * US)


def simulated(segments: Segments, gpu: GpuSpec, **options: Any) -> SimulatedExecutor:
    """An executor in virtual time."""
    executor = make_executor("simulated", segments=segments, gpu=gpu, **options)
    assert isinstance(executor, SimulatedExecutor)
    return executor


class Chains:
    """Chains of calls, each over an array of its own to which every call adds its place."""

    def __init__(self, chains: int, calls: int) -> None:
        self.segments = Segments()
        self.values = np.zeros(chains)
        self.calls = [[self._call(chain, place) for place in range(calls)] for chain in range(chains)]

    def _call(self, chain: int, place: int) -> KernelCall:
        def body() -> None:
            self.values[chain] = 2 * self.values[chain] + place

        segment = (self.segments.intern("values", 0, ("chain", chain)),)
        return KernelCall(f"{chain}.{place}", PythonLaunch(body), (), (), segment)

    def emitters(self, awaits: bool = False) -> list[Iterator[Item]]:
        """Generators of the chains, which await every call if they are told to."""

        def emit(calls: list[KernelCall]) -> Iterator[Item]:
            for call in calls:
                yield call
                if awaits:
                    yield AwaitCounts(call)

        return [emit(calls) for calls in self.calls]

    def time(self, spec: GpuSpec, runs: int = 1, awaits: bool = False, **options: Any) -> list[float]:
        """Virtual time of each of some runs [us]. Each is synchronised."""
        with simulated(self.segments, spec, **options) as executor:
            times = [0.0]
            for _ in range(runs):
                executor.run(self.emitters(awaits))
                executor.synchronize()
                times.append(executor.now / US)
        return [later - earlier for earlier, later in pairwise(times)]


def test_launches_of_compiled_code_take_the_host_its_time() -> None:
    spec = with_host(ISSUED, launch=3 * US, keep=0.5 * US, run=7 * US, emit=0.25 * US)
    assert Chains(1, 8).time(spec, model="serial") == pytest.approx([7 + 8 * 3.75 + 1])
    host_waits = with_host(spec, record=0.0, wait=0.0)
    (time,) = Chains(4, 2).time(host_waits, model="streams", pieces=False)
    assert time == pytest.approx(7 + 8 * 3.75 + 1)


def test_a_launch_on_another_stream_takes_longer_where_it_does() -> None:
    chains = Chains(4, 2)  # which take turns
    without, with_hop = (
        chains.time(with_host(ISSUED, launch=2 * US, hop=hop * US), model="streams", pieces=False)[0] for hop in (0, 1)
    )
    assert with_hop - without == pytest.approx(7)  # all launches but the first, on the home stream


def test_awaited_calls_that_ended_together_are_resumed_together() -> None:
    spec = with_host(ISSUED, resume=20 * US)
    alone, together = (Chains(chains, 2).time(spec, model="streams", awaits=True, pieces=False)[0] for chains in (1, 8))
    assert 40 < alone < 46
    assert together < 16 * 20 / 2  # 16 waits, which the host sees to end in a few looks


def test_runs_of_calls_that_come_again_are_pieces_on_the_model_as_well() -> None:
    spec = with_host(
        ISSUED, launch=4 * US, launch_graph=2 * US, launch_branches=3 * US, build=10 * US, keep_piece=0.25 * US
    )
    times = Chains(4, 8).time(spec, runs=100, model="streams")
    assert times[0] >= 32 * 4
    assert times[-1] == pytest.approx(4 * 2 + 32 * 0.25 + 8, abs=2)  # a graph for each chain, one behind another
    assert times[-1] == pytest.approx(times[-2])


def test_graphs_with_branches_and_joins_take_longer() -> None:
    segments = Segments()
    own = [segments.intern(name) for name in "abc"]
    nothing = PythonLaunch(lambda: None)
    sides = [KernelCall(f"side {n}", nothing, (), (own[n],)) for n in range(2)]
    calls = [*sides, KernelCall("join", nothing, tuple(own[:2]), (own[2],))]
    spec = replace(with_host(ISSUED, launch_graph=2 * US, launch_branches=3 * US), node=1 * US, join=2 * US)

    def time(gpu: GpuSpec) -> float:
        with simulated(segments, gpu, model="graph-cached") as executor:
            for _ in range(2):
                began = executor.now
                executor.run([calls])
                executor.synchronize()
            return (executor.now - began) / US

    assert time(spec) == pytest.approx(2 + 3 + 1 + 1 + 2 + 1)


@pytest.mark.parametrize(
    "options",
    [
        {"model": "serial"},
        {"model": "streams"},
        {"model": "streams", "pieces": False, "window": 2, "streams": 2},
        {"model": "streams", "completion": "polling"},
        {"model": "streams", "completion": "polling", "chains": True, "window": 3},
    ],
)
@pytest.mark.parametrize("awaits", [False, True])
def test_results_are_those_of_serial_and_times_come_again(options: dict[str, Any], awaits: bool) -> None:
    chains = Chains(5, 4)
    with make_executor("serial", segments=chains.segments) as serial:
        for _ in range(40):
            serial.run(chains.emitters())
    expected = chains.values.copy()
    times = []
    for _ in range(2):
        chains.values[:] = 0
        times.append(chains.time(gpu_named("h100"), runs=40, awaits=awaits, **options))
        assert np.array_equal(chains.values, expected)
    assert times[0] == times[1]


def test_what_was_recorded_is_legal() -> None:
    chains = Chains(3, 5)
    options: dict[str, Any] = {"model": "streams", "gpu": "h100", "record": "times"}
    with make_executor("simulated", segments=chains.segments, **options) as executor:
        trace = executor.run(chains.emitters(awaits=True))
    assert validate(trace.order, trace, chains.segments) == []
    assert trace.concurrency() > 0


def test_counts_choose_the_calls_of_counted_lists() -> None:
    segments, found = Segments(), np.zeros(1, np.int32)
    done: list[int] = []
    where = (segments.intern("where"),)
    counting = KernelCall("count", PythonLaunch(lambda: found.fill(len(done) % 3)), (), where)
    works = [KernelCall(f"work {n}", PythonLaunch(partial(done.append, n)), (), (), where) for n in range(3)]
    counted = CountedList([counting, Arrival(counting, lambda: None), Counted(found, works.__getitem__), works[0]])
    with make_executor("simulated", segments=segments, gpu="h100", model="streams") as executor:
        for _ in range(5):
            executor.run([counted])
        executor.synchronize()
    assert done == [0, 1, 0, 0, 1, 0, 0]  # one call more whenever there were one or four before


def test_a_body_that_fails_is_named_and_the_executor_runs_again() -> None:
    chains = Chains(2, 3)
    fails = KernelCall("fails", PythonLaunch(lambda: 1 / 0), (), (), chains.calls[0][0].updates)  # type: ignore[arg-type]
    with make_executor("simulated", segments=chains.segments, gpu="h100", model="streams") as executor:
        with pytest.raises(CallError, match="fails"):
            executor.run([[fails], *chains.emitters()])
        chains.values[:] = 0
        executor.run(chains.emitters())
        executor.synchronize()
    assert chains.values.tolist() == [4, 4]


def least(work: Chains, **options: Any) -> float:
    """What a run takes on an H100 once it is known [us]."""
    return work.time(gpu_named("h100"), runs=3, model="streams", pieces=False, **options)[-1]


def test_ways_of_issuing_are_in_the_order_in_which_they_must_be() -> None:
    """So that a change of policies shows where there is no GPU: what waits less, hops less or looks less is faster."""
    few, many = Chains(3, 12), Chains(24, 4)
    assert least(few, stream_policy="follow") < least(few, stream_policy="round_robin")
    polling: dict[str, Any] = {"completion": "polling"}
    assert least(few) < least(few, **polling, chains=True) < least(few, **polling)
    slow = replace(gpu_named("h100"), shortest=60 * US)  # so that chains that share a stream wait for each other
    narrow, wide = (
        many.time(slow, runs=3, model="streams", pieces=False, streams=streams, window=4 * streams)[-1]
        for streams in (8, 32)
    )
    assert wide < 0.75 * narrow
