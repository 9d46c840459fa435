"""The pipeline executor on a fake asynchronous device: legality, the bits of serial, stealing, bounds, failures."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from scheduler import (
    AwaitCounts,
    BufferSet,
    CallError,
    FixedList,
    JobArguments,
    JobKind,
    KernelCall,
    Segments,
    Trace,
    make_executor,
    validate,
)
from scheduler.testing import DeviceFault, FakeDevice
from tests.scheduler.programs import Program, Spec, run_and_check, specs


def pipeline(device: FakeDevice, table: Segments, **options: Any) -> Any:
    return make_executor("pipeline", segments=table, driver=device, stream=0, **{"record": "order", **options})


# ---------------------------------------------------------------------------------------------------- ordinary emitters


@settings(max_examples=40, deadline=None)
@given(
    specs(),
    st.sampled_from(["order", "times"]),
    st.integers(1, 4),
    st.integers(1, 3),
    st.sampled_from([0.05, 0.5, 0.9]),
    st.integers(0, 99),
)
def test_any_list(
    emitters: list[list[Spec]], record: str, streams: int, depth: int, eagerness: float, seed: int
) -> None:
    device = FakeDevice(seed, eagerness)
    program = Program(emitters, device.launch)
    executor = pipeline(device, program.segments, record=record, streams=streams, depth=depth)
    for _ in range(3):  # call by call, then as graphs
        run_and_check(program, executor)
    executor.close()
    assert not device.graphs


NOTHING = Spec((), (), ())
A, B = (0, 0, 0), (1, 0, 0)
PART_IN_THE_SECOND_ROUND = [
    [*[NOTHING] * 2, Spec((A,), (), (B,)), NOTHING, Spec((A, A, A), (), ()), Spec((), (), (A,)), Spec((A,), (), ())]
    + [NOTHING] * 5,
    [Spec((), (B,), ()), *[NOTHING] * 3],
    [NOTHING, Spec((), (A,), ()), Spec((), (A, A), ())],
]
"""Lists whose hazards, without those that earlier rounds imply, are others in the second round than in the first."""


@settings(max_examples=25, deadline=None)
@given(specs(), st.integers(1, 3), st.integers(0, 99))
def test_one_emitter_gives_the_bits_of_serial(emitters: list[list[Spec]], streams: int, seed: int) -> None:
    """With one emitter program order is fixed, awaits and branches included."""
    expected = run_and_check(Program(emitters[:1]), make_executor("serial", record="order"))
    device = FakeDevice(seed)
    program = Program(emitters[:1], device.launch)
    executor = pipeline(device, program.segments, streams=streams)
    assert run_and_check(program, executor) == expected
    executor.close()


@settings(max_examples=25, deadline=None)
@given(specs(awaits=False), st.integers(1, 4), st.integers(1, 3), st.integers(1, 3), st.integers(0, 99))
@example(PART_IN_THE_SECOND_ROUND, 2, 1, 2, 0)
def test_fixed_lists_give_the_bits_of_serial_in_every_round(
    emitters: list[list[Spec]], streams: int, depth: int, times: int, seed: int
) -> None:
    device = FakeDevice(seed, eagerness=0.05)
    program = Program(emitters, device.launch)
    lists = [FixedList(emitter) for emitter in program.emitters()]  # type: ignore[arg-type]
    serial = make_executor("serial", device="cuda", driver=device, stream=0)
    program.reset()
    for _ in range(times):
        serial.run(lists)
    serial.synchronize()
    expected = program.snapshot()
    plain = pipeline(device, program.segments, streams=streams, depth=depth, record="off")
    recorded = pipeline(device, program.segments, streams=streams, depth=depth)
    for executor in (plain, plain, recorded):
        program.reset()
        trace = executor.repeat(lists, times)
        executor.synchronize()
        assert program.snapshot() == expected
        assert trace.counters.calls == sum(map(len, lists)) * (times if executor is plain else 1)
        if executor is recorded:
            assert validate(trace.order, trace, program.segments) == []
    for executor in (plain, recorded):
        executor.close()


@pytest.mark.parametrize("record", ["off", "order", "times"])
def test_lists_that_come_again_are_graphs(record: str) -> None:
    device, table = FakeDevice(1), Segments()
    ids = [table.intern(f"b{k}") for k in range(2)]
    body = device.launch(lambda: None)
    lists = [FixedList([KernelCall(f"c{k}{i}", body, (), (ids[k],)) for i in range(5)]) for k in range(2)]
    executor = pipeline(device, table, record=record)
    launches = [executor.run(lists).counters.launches for _ in range(4)]
    assert launches == [2] * 4
    assert executor.launcher.built == (10 if record == "times" else 2)  # events belong to one run
    assert [executor.run([list(fixed) for fixed in lists]).counters.launches for _ in range(3)] == [10, 2, 2]
    counters = executor.run(lists).counters
    # within each graph four links of a chain; between the jobs none
    assert (counters.jobs, counters.calls, counters.waits_asked, counters.waits_inserted) == (2, 10, 8, 8)
    assert counters.job_seconds > 0
    executor.close()


def test_a_graph_is_built_again_after_a_buffer_has_moved() -> None:
    device, table, buffers, seen = FakeDevice(1), Segments(), BufferSet(), list[int]()
    buffer = buffers.add("x", 8, 8)
    launch = device.launch(seen.append, (buffer,), buffers)
    lists = [FixedList([KernelCall(f"c{i}", launch, (), (table.intern("x"),)) for i in range(2)])]
    executor = pipeline(device, table, record="off")
    for address in (8, 64):
        buffer.rebind(address, 8)
        for _ in range(2):
            executor.run(lists)
        executor.synchronize()
    assert seen == [8, 8, 8, 8, 64, 64, 64, 64]
    assert executor.launcher.built == 2
    executor.close()


def test_rounds_of_lists_that_share_nothing_part() -> None:
    """A list goes on to its next round while another one is still in its first."""
    found = set()
    for seed in range(20):
        device, table, order = FakeDevice(seed, eagerness=0.3), Segments(), list[str]()
        lists = []
        for k, count in enumerate((2, 12)):
            body = device.launch(lambda k=k, order=order: order.append(f"{k}"))
            lists.append(FixedList([KernelCall(f"{k}", body, (), (table.intern(f"b{k}"),))] * count))
        executor = pipeline(device, table, record="off", depth=4)
        executor.repeat(lists, 3)
        executor.synchronize()
        assert len(order) == 3 * 14
        second_round = [i for i, k in enumerate(order) if k == "0"][2]
        first_round_of_other = [i for i, k in enumerate(order) if k == "1"][11]
        found.add(second_round < first_round_of_other)
        executor.close()
    assert True in found


def test_an_awaited_call_resumes_its_emitter_while_the_rest_goes_on() -> None:
    device, table = FakeDevice(3, eagerness=0.05), Segments()
    n, rest = table.intern("n"), table.intern("rest")
    total, seen = [0], list[tuple[int, int]]()

    def bump() -> None:
        total[0] += 1

    ran: list[int] = []
    count = KernelCall("count", device.launch(bump), (), (), (n,))
    others = KernelCall("rest", device.launch(lambda: ran.append(1)), (), (), (rest,))

    def emitter() -> Iterator[KernelCall | AwaitCounts]:
        for _ in range(3):
            yield count
            for _ in range(10):
                yield others
            yield AwaitCounts(count)
            seen.append((total[0], len(ran)))

    executor = pipeline(device, table)
    trace = executor.run([emitter()])
    executor.synchronize()
    assert [numbers for numbers, _ in seen] == [1, 2, 3]
    assert any(done < 10 * number for number, done in seen)  # the rest had not all run
    assert len(ran) == 30
    assert validate(trace.order, trace, table) == []
    executor.close()


def test_run_orders_with_the_home_stream_on_both_sides() -> None:
    for seed in range(20):
        device, table, order = FakeDevice(seed, eagerness=0.05), Segments(), list[str]()
        executor = pipeline(device, table, streams=3)
        device.enqueue(0, lambda order=order: order.append("before"))
        body = device.launch(lambda order=order: order.append("run"))
        executor.run([[KernelCall("k", body, (), (table.intern(f"b{i}"),))] for i in range(6)])
        device.enqueue(0, lambda order=order: order.append("after"))
        device.synchronize(0)
        assert order == ["before", *["run"] * 6, "after"]
        executor.close()


# -------------------------------------------------------------------------------------------------------- whole jobs


class Filters:
    """Jobs of two kinds, of `lengths` calls, from one array into another through working memory of the stream."""

    def __init__(self, device: Any, lengths: tuple[int, ...] = (1, 2, 5), batches: int = 24) -> None:
        self.device = device
        self.table = Segments()
        self.arrays = np.zeros((batches, 4), np.uint64)
        self.by_address = {array.ctypes.data: array for array in self.arrays}
        self.scratch: list[np.ndarray] = []
        self.kinds = [JobKind(f"filter{n}", lambda arguments, n=n: self.build(arguments, n)) for n in lengths]
        self.ids = [self.table.intern(f"batch{k}") for k in range(batches)]
        self.reset()

    def reset(self) -> None:
        self.arrays[:] = np.arange(self.arrays.size, dtype=np.uint64).reshape(self.arrays.shape) + np.uint64(1)

    def build(self, arguments: JobArguments, calls: int) -> list[KernelCall]:
        work = np.zeros(4, np.uint64)
        self.scratch.append(work)
        w, out = self.table.intern("work"), self.table.intern("out")

        def load(source: int, factor: int) -> None:
            work[:] = self.by_address[source] * np.uint64(factor) + np.uint64(3)

        def mix() -> None:
            work[:] = work * np.uint64(31) + work[::-1]

        def store(result: int) -> None:
            array = self.by_address[result]
            array[:] = array * np.uint64(7) + work
            if calls > 1:
                work[:] = 0  # whoever comes too early or too late shows

        def launch(body: Any, *names: str) -> Any:
            return self.device.launch(body, [arguments[name] for name in names], arguments.buffers)

        if calls == 1:
            both = launch(lambda source, factor, result: (load(source, factor), store(result)), *"sfr")
            return [KernelCall("both", both, (), (w, out))]
        middle = [KernelCall("mix", launch(mix), (), (), (w,))] * (calls - 2)
        return [
            KernelCall("load", launch(load, "s", "f"), (), (w,)),
            *middle,
            KernelCall("store", launch(store, "r"), (w,), (), (out,)),
        ]

    def job(self, kind: int, source: int, result: int, factor: int = 5) -> KernelCall:
        launch = self.kinds[kind].job(s=self.arrays[source], f=factor, r=self.arrays[result])
        updates = (self.ids[result],)
        return KernelCall(self.kinds[kind].name, launch, (self.ids[source],), (), updates)

    def random_jobs(self, seed: int, count: int) -> list[KernelCall]:
        draw = np.random.default_rng(seed)
        return [
            self.job(int(draw.integers(len(self.kinds))), *map(int, draw.choice(8, 2, replace=False)), factor=int(f))
            for f in draw.integers(2, 9, size=count)
        ]

    def expected(self, calls: list[KernelCall]) -> bytes:
        """The result of the jobs one after another, on one stream."""
        self.reset()
        executor = make_executor("serial", device="cuda", driver=self.device, stream=0)
        executor.run([calls])
        executor.synchronize()
        return self.arrays.tobytes()


@pytest.mark.parametrize("seed", range(6))
def test_jobs_give_the_bits_of_serial(seed: int) -> None:
    device = FakeDevice(seed, eagerness=(0.05, 0.3, 0.9)[seed % 3])
    filters = Filters(device)
    jobs = filters.random_jobs(seed, 40)
    expected = filters.expected(jobs)
    for options in ({"streams": 3, "depth": 1 + seed % 3}, {"record": "off"}, {"record": "times", "streams": 2}):
        executor = pipeline(device, filters.table, **options)
        for _ in range(2):
            filters.reset()
            trace = executor.run([jobs])
            executor.synchronize()
            assert filters.arrays.tobytes() == expected
            assert trace.counters.jobs == trace.counters.launches == len(jobs)
            if trace.record != "off":
                assert validate(jobs, trace, filters.table) == []
        executor.close()
    streams = make_executor("streams", segments=filters.table, driver=device, stream=0, record="order")
    filters.reset()
    streams.run([jobs])  # jobs are launches as any other
    streams.synchronize()
    assert filters.arrays.tobytes() == expected
    streams.close()


def test_a_kind_has_one_graph_and_memory_of_its_own_on_each_worker() -> None:
    device = FakeDevice(1)
    filters = Filters(device, lengths=(4,))
    jobs = [filters.job(0, k, k + 12) for k in range(12)]
    executor = pipeline(device, filters.table, streams=3)
    executor.run([jobs])
    executor.synchronize()
    assert executor.launcher.built == len(filters.scratch) == 3
    before = device.updates
    executor.run([jobs])
    assert executor.launcher.built == 3
    # of four nodes, the two that take the job's own arguments are given those of each job
    assert 0 < device.updates - before <= 2 * len(jobs)
    executor.run([jobs[:1]] * 3)
    before = device.updates
    executor.run([jobs[:1]])  # the worker that had it holds its arguments already
    assert device.updates == before
    executor.close()
    assert not device.graphs


def worker_of(trace: Trace) -> list[int]:
    streams = {step.seq: step.stream for step in trace.log if step.kind == "issue"}
    return [streams[seq] for seq in range(len(trace.order))]


def test_a_worker_with_nothing_to_do_takes_jobs_of_another() -> None:
    """Every other job is long: all of the long ones are worker 0's, and worker 1 takes some of them."""
    device = FakeDevice(2, eagerness=0.3)
    filters = Filters(device, lengths=(40, 1), batches=48)
    jobs = [filters.job(k % 2, k, 47 - k) for k in range(24)]
    expected = filters.expected(jobs)
    filters.reset()
    executor = pipeline(device, filters.table, streams=2)
    trace = executor.run([jobs])
    executor.synchronize()
    assert filters.arrays.tobytes() == expected
    workers = worker_of(trace)
    taken = [seq for seq, worker in enumerate(workers) if worker != seq % 2]
    assert trace.counters.stolen == len(taken) > 0
    assert any(seq % 2 == 0 for seq in taken)
    executor.close()


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_jobs_in_flight_are_bounded(depth: int) -> None:
    device = FakeDevice(4, eagerness=0.2)
    filters = Filters(device, lengths=(3,))
    executor = pipeline(device, filters.table, streams=2, depth=depth)
    trace = executor.run([[filters.job(0, k % 12, k % 12 + 12) for k in range(30)]])
    flying, most = [0, 0], [0, 0]
    for step in trace.log:
        flying[step.stream] += {"issue": 1, "observe": -1, "wait": 0}[step.kind]
        most = list(map(max, most, flying))
    assert most == [depth, depth]
    executor.close()


def test_jobs_are_pulled_as_they_are_needed() -> None:
    device = FakeDevice(4, eagerness=0.2)
    filters = Filters(device, lengths=(3,))
    pulled, ahead = [0], list[int]()

    def emitter() -> Iterator[KernelCall]:
        for k in range(200):
            pulled[0] += 1
            ahead.append(pulled[0] - device.executed // 3)
            yield filters.job(0, k % 12, k % 12 + 12)

    executor = pipeline(device, filters.table, streams=2, depth=2)
    executor.run([emitter()])
    assert max(ahead) < 40
    executor.close()


def test_jobs_on_host_threads() -> None:
    class Host:
        """Launches that run at once, in the manner of the fake device."""

        def launch(self, body: Any, arguments: list[Any], buffers: BufferSet) -> Any:
            return FakeDevice.launch(self, body, arguments, buffers)  # type: ignore[arg-type]

        def enqueue(self, stream: int, body: Any) -> None:
            body()

    filters = Filters(Host())
    jobs = filters.random_jobs(3, 30)
    results = set()
    for name in ("serial", "shuffled", "threads"):
        executor = make_executor(name, segments=filters.table, workers=3)
        filters.reset()
        executor.run([jobs])
        results.add(filters.arrays.tobytes())
        executor.close()
    assert len(results) == 1


# ------------------------------------------------------------------------------------------------------------ failures


def test_arguments_of_jobs_are_checked() -> None:
    device = FakeDevice()
    filters = Filters(device)
    kind = filters.kinds[2]
    with pytest.raises(TypeError, match="argument 's' of a job 'filter5' is a float; pass an array, a Buffer, an int"):
        kind.job(s=0.5)
    good = filters.job(2, 0, 1)
    wrong = {
        "has arguments s, q; the first one had s, f, r": {"s": filters.arrays[0], "q": 3},
        "argument 'f' of a job 'filter5' is memory, unlike that": dict.fromkeys("sfr", filters.arrays[0]),
        "argument 's' of a job 'filter5' is a number, unlike that": dict.fromkeys("sfr", 1),
    }
    executor = pipeline(device, filters.table, streams=1)
    for message, arguments in wrong.items():
        bad = KernelCall("bad", kind.job(**arguments), (), ())
        with pytest.raises(CallError, match=f"call 'bad' .*{message}"):
            executor.run([[good, bad]])
    executor.run([[good]])
    executor.close()
    empty = KernelCall("empty", JobKind("empty", lambda arguments: []).job(), (), ())
    with pytest.raises(CallError, match="the build function of jobs 'empty' returned no calls"):
        pipeline(device, filters.table).run([[empty]])
    unknown = JobKind("unknown", lambda arguments: [arguments["x"]])  # type: ignore[list-item]
    with pytest.raises(CallError, match="jobs 'unknown' have no argument 'x'; they have y"):
        pipeline(device, filters.table).run([[KernelCall("c", unknown.job(y=1), (), ())]])


@pytest.mark.parametrize("name", ["graph", "graph-cached"])
def test_jobs_are_no_nodes_of_graphs(name: str) -> None:
    device = FakeDevice()
    filters = Filters(device)
    executor = make_executor(name, segments=filters.table, driver=device, stream=0)
    with pytest.raises(CallError, match="a job 'filter2' cannot be a node of a graph; run it by executor 'pipeline'"):
        executor.run([[filters.job(1, 0, 1)]])
    executor.close()


class Refused:
    """A launch that the driver refuses."""

    def issue(self, stream: int) -> None:
        raise ValueError("invalid configuration")


def test_a_refused_launch_is_named_and_running_calls_finish() -> None:
    device, table, ran = FakeDevice(2, eagerness=0.1), Segments(), list[int]()
    body = device.launch(lambda: ran.append(1))
    good = [KernelCall(f"g{k}", body, (), (table.intern(f"b{k}"),)) for k in range(4)]
    bad = KernelCall("bad", Refused(), (), (table.intern("bad"),))
    executor = pipeline(device, table)
    with pytest.raises(CallError, match=r"call 'bad' .*invalid configuration") as info:
        executor.run([[*good, bad, *good]])
    assert info.value.call is bad
    assert len(ran) == 4
    trace = executor.run([good])
    executor.synchronize()
    assert len(ran) == 8
    assert validate(trace.order, trace, table) == []
    executor.close()


def test_a_graph_that_cannot_be_built_is_named() -> None:
    class Broken(FakeDevice):
        def build_graph(self, launches: Any, waits: Any, events: Any) -> int:
            raise ValueError("no such kernel")

    device, table = Broken(1), Segments()
    lists = [FixedList([KernelCall(f"c{k}", device.launch(lambda: None), (), (table.intern("x"),)) for k in range(3)])]
    executor = pipeline(device, table, record="off")
    with pytest.raises(CallError, match="executor 'pipeline' could not build a graph of 3 calls.*no such kernel"):
        executor.run(lists)
    executor.close()


def test_a_fault_says_that_the_context_is_lost() -> None:
    device, table = FakeDevice(4), Segments()
    x = table.intern("x")

    def illegal() -> None:
        raise MemoryError("illegal address")

    calls = [KernelCall(name, device.launch(body), (), (x,)) for name, body in (("a", illegal), ("b", lambda: None))]
    endless = itertools.repeat(KernelCall("c", device.launch(lambda: None), (), (table.intern("y"),)))
    executor = pipeline(device, table)
    with pytest.raises(CallError, match=r"CUDA fault ended the context.*executor='serial', check_each=True") as info:
        executor.run([calls * 20, endless])
    assert info.value.fatal
    assert isinstance(info.value.cause, DeviceFault)
    executor.close()


def test_an_emitter_that_raises_passes_through() -> None:
    device, table = FakeDevice(6), Segments()
    call = KernelCall("fine", device.launch(lambda: None), (), (table.intern("a"),))

    def emitter() -> Iterator[KernelCall]:
        yield call
        raise LookupError("world 3 is not finite")

    executor = pipeline(device, table)
    with pytest.raises(LookupError, match="world 3"):
        executor.run([emitter()])
    assert executor.run([[call]]).counters.calls == 1
    with pytest.raises(ValueError, match=r"repeat\(\) was asked for 0 rounds; ask for at least 1"):
        executor.repeat([FixedList([call])], 0)
    executor.close()
