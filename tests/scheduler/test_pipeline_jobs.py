"""Jobs of the pipeline executor: kinds with graphs of their own, stealing, and how many are in flight."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from simengine_scheduler import CallError, KernelCall, Segments, Trace, make_executor, validate
from simengine_scheduler.jobs import JobArguments, JobKind
from simengine_scheduler.launch import BufferSet
from simengine_scheduler.testing.fake_device import FakeDevice


def pipeline(device: FakeDevice, table: Segments, **options: Any) -> Any:
    return make_executor("pipeline", segments=table, driver=device, stream=0, **{"record": "order", **options})


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
    assert executor.built == len(filters.scratch) == 3
    before = device.updates
    executor.run([jobs])
    assert executor.built == 3
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
