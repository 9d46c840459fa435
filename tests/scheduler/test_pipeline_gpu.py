"""Jobs of the pipeline on a real GPU: memory of the worker, arguments put into ready-made graphs, stealing, overlap."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simengine_scheduler import CudaLaunch, KernelCall, Segments, make_executor, validate
from simengine_scheduler.jobs import JobArguments, JobKind
from tests.scheduler.patience import best

pytestmark = pytest.mark.gpu

SOURCE = r"""
extern "C" __global__ void load(const unsigned long long* source, int factor, unsigned long long* work) {
  work[threadIdx.x] = source[threadIdx.x] * factor + 3ull;
}
extern "C" __global__ void mix(long long cycles, unsigned long long* work) {
  // Reads early and writes late, so that a job that shares the memory shows.
  const unsigned long long value = work[threadIdx.x] * 31ull + work[blockDim.x - 1 - threadIdx.x];
  const long long began = clock64();
  while (clock64() - began < cycles) {}
  __syncthreads();
  work[threadIdx.x] = value;
}
extern "C" __global__ void store(unsigned long long* work, unsigned long long* result) {
  result[threadIdx.x] = result[threadIdx.x] * 7ull + work[threadIdx.x];
  work[threadIdx.x] = 0;
}
"""
WIDTH, BATCHES = 64, 24


class Filters:
    """Jobs of a short and a long kind from one array into another."""

    def __init__(self, cupy: Any, cycles: int = 20_000) -> None:
        self.cupy = cupy
        self.module = cupy.RawModule(code=SOURCE)
        self.table = Segments()
        self.arrays = [cupy.empty(WIDTH, np.uint64) for _ in range(BATCHES)]
        self.ids = [self.table.intern(f"batch{k}") for k in range(BATCHES)]
        self.kinds = [JobKind(f"filter{n}", lambda arguments, n=n: self.build(arguments, n, cycles)) for n in (1, 12)]
        self.reset()

    def reset(self) -> None:
        for k, array in enumerate(self.arrays):
            array[:] = self.cupy.arange(WIDTH, dtype=np.uint64) + k

    def bits(self) -> bytes:
        return b"".join(self.cupy.asnumpy(array).tobytes() for array in self.arrays)

    def build(self, arguments: JobArguments, mixes: int, cycles: int) -> list[KernelCall]:
        work = self.cupy.empty(WIDTH, np.uint64)
        w, out = self.table.intern("work"), self.table.intern("out")

        def launch(name: str, *args: Any) -> CudaLaunch:
            function = self.module.get_function(name)
            return CudaLaunch.from_kernel(function, (1,), (WIDTH,), args, buffers=arguments.buffers)

        mix = KernelCall("mix", launch("mix", np.int64(cycles), work), (), (), (w,))
        return [
            KernelCall("load", launch("load", arguments["source"], arguments["factor"], work), (), (w,)),
            *[mix] * mixes,
            KernelCall("store", launch("store", work, arguments["result"]), (), (), (w, out)),
        ]

    def job(self, kind: int, source: int, result: int, factor: int) -> KernelCall:
        launch = self.kinds[kind].job(source=self.arrays[source], factor=factor, result=self.arrays[result])
        return KernelCall(self.kinds[kind].name, launch, (self.ids[source],), (), (self.ids[result],))

    def random_jobs(self, seed: int, count: int = 120) -> list[KernelCall]:
        draw = np.random.default_rng(seed)
        pairs = [draw.choice(BATCHES, 2, replace=False) for _ in range(count)]
        return [self.job(int(draw.integers(2)), int(a), int(b), int(draw.integers(2, 9))) for a, b in pairs]


@pytest.mark.parametrize("record", ["off", "order", "times"])
def test_jobs_give_the_bits_of_serial(cupy: Any, record: str) -> None:
    filters = Filters(cupy)
    jobs = filters.random_jobs(1)
    results = set()
    for name, options in (
        ("serial", {"device": "cuda"}),
        ("streams", {"streams": 4}),
        *(("pipeline", {"streams": streams, "depth": depth}) for streams, depth in ((1, 2), (3, 1), (8, 2))),
    ):
        executor = make_executor(name, segments=filters.table, record=record, **options)
        for _ in range(2):
            filters.reset()
            trace = executor.run([jobs])
            results.add(filters.bits())
            if record != "off":
                assert validate(jobs, trace, filters.table, slack=5e-6) == []
        executor.close()
    assert len(results) == 1


def test_a_worker_with_nothing_to_do_takes_long_jobs_of_another(cupy: Any) -> None:
    filters = Filters(cupy, cycles=60_000)
    half = BATCHES // 2
    jobs = [filters.job(1 - k % 2, k % half, half + k % half, 3) for k in range(half)]
    executor: Any = make_executor("pipeline", segments=filters.table, streams=2, depth=1, record="times")
    for _ in range(20):  # until each worker has met each kind of job, if it ever does, and built a graph for it
        executor.run([jobs])
        if executor.built == 4:
            break
    traces = [executor.run([jobs]) for _ in range(6)]
    assert max(trace.counters.stolen for trace in traces) > 0
    assert best(lambda: executor.run([jobs]).concurrency(), 1) > 1
    assert 3 <= executor.built <= 4, "a graph for each kind of job that a worker met, not for each job"
    executor.close()
