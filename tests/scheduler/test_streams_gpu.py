"""The CUDA executors on a real GPU: legality, the bits of serial, concurrency, awaits, refused launches."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from simengine_scheduler import (
    AwaitCounts,
    CallError,
    Calls,
    CudaLaunch,
    Executor,
    FixedList,
    KernelCall,
    Segments,
    make_executor,
    read,
    update,
    validate,
)
from simengine_scheduler.executors import run_repeatedly
from tests.scheduler.patience import best

pytestmark = pytest.mark.gpu

SOURCE = r"""
extern "C" __global__ void mix(int kind, long long cycles, const unsigned long long* a,
                               const unsigned long long* b, unsigned long long* out) {
    // Reads early and writes late, so that an illegal order shows: kind 0 replaces, kind 1 updates.
    unsigned long long before = out[threadIdx.x];
    unsigned long long value = a[threadIdx.x] * 6364136223846793005ull + b[threadIdx.x] * 3ull + 1ull;
    long long began = clock64();
    while (clock64() - began < cycles) { }
    out[threadIdx.x] = kind ? before * 31ull + value : value;
}
"""
WIDTH, BUFFERS = 32, 6


@pytest.fixture(scope="module")
def kernel(cupy: Any) -> Any:
    return cupy.RawKernel(SOURCE, "mix")


class Bench:
    """Arrays, segments and random calls on them."""

    def __init__(self, cupy: Any, kernel: Any, cycles: int = 10000) -> None:
        self.cupy, self.kernel, self.cycles = cupy, kernel, cycles
        self.table = Segments()
        self.arrays = [cupy.empty(WIDTH, np.uint64) for _ in range(BUFFERS)]
        self.ids = [self.table.intern(f"b{k}") for k in range(BUFFERS)]
        self.reset()

    def reset(self) -> None:
        for k, array in enumerate(self.arrays):
            array[:] = self.cupy.arange(WIDTH, dtype=np.uint64) + k

    def bits(self) -> bytes:
        return b"".join(self.cupy.asnumpy(a).tobytes() for a in self.arrays)

    def call(self, name: str, kind: int, a: int, b: int, out: int) -> KernelCall:
        args = (kind, np.int64(self.cycles), self.arrays[a], self.arrays[b], self.arrays[out])
        launch = CudaLaunch.from_kernel(self.kernel, (1,), (WIDTH,), args)
        written = ((), (self.ids[out],)) if kind else ((self.ids[out],), ())
        return KernelCall(name, launch, (self.ids[a], self.ids[b]), *written)

    def random_calls(self, seed: int, count: int = 200) -> list[KernelCall]:
        draw = random.Random(seed)
        pick = [[draw.randrange(2), *(draw.randrange(BUFFERS) for _ in range(3))] for _ in range(count)]
        return [self.call(f"k{i}", *p) for i, p in enumerate(pick)]


def executors(table: Segments, record: str) -> Iterator[Executor]:
    yield make_executor("serial", device="cuda", record=record)
    for completion, window, streams in itertools.product(("events", "polling"), (1, 32), (1, 8)):
        yield make_executor(
            "streams", segments=table, completion=completion, window=window, streams=streams, record=record
        )
    for name, planner in itertools.product(("streams", "graph", "graph-cached"), ("kesco", "opara")):
        yield make_executor(name, segments=table, stream_policy=planner, record=record)
    for depth in (1, 2):
        yield make_executor("pipeline", segments=table, depth=depth, record=record)


@pytest.mark.parametrize("record", ["order", "times"])
def test_every_mode_is_legal_and_gives_the_bits_of_serial(cupy: Any, kernel: Any, record: str) -> None:
    bench = Bench(cupy, kernel)
    calls = bench.random_calls(7)
    results = set()
    for executor in executors(bench.table, record):
        for _ in range(2):
            bench.reset()
            trace = executor.run([calls])
            results.add(bench.bits())  # on the home stream: ordered behind the run without a host wait
            assert validate(calls, trace, bench.table, slack=5e-6) == []
        executor.close()
    assert len(results) == 1


def test_fixed_lists_give_the_bits_of_serial(cupy: Any, kernel: Any) -> None:
    """What executors keep of lists: plans, graphs, jobs. Lists share buffers, so that jobs wait for each other."""
    bench = Bench(cupy, kernel)
    lists = [FixedList(bench.random_calls(seed, 40)) for seed in range(3)]
    results = set()
    for executor in executors(bench.table, "off"):
        for rounds in (1, 3, 2):
            bench.reset()
            run_repeatedly(executor, lists, rounds)
            results.add((rounds, bench.bits()))
        executor.close()
    assert len(results) == 3


@pytest.mark.parametrize("completion", ["events", "polling"])
def test_independent_calls_really_run_at_once(cupy: Any, kernel: Any, completion: str) -> None:
    bench = Bench(cupy, kernel, cycles=400_000)  # some 200 us
    calls = [bench.call(f"k{i}", 0, k := i % BUFFERS, k, k) for i in range(48)]
    executor = make_executor("streams", segments=bench.table, completion=completion, record="times")
    assert best(lambda: executor.run([calls]).concurrency(), 2.5) > 2.5
    executor.close()


def test_awaited_numbers_are_readable(cupy: Any, kernel: Any) -> None:
    bench = Bench(cupy, kernel, cycles=20_000)
    memory = cupy.cuda.alloc_pinned_memory(8 * WIDTH)
    host = np.frombuffer(memory, np.uint64, WIDTH)
    host[:] = 0
    args = (1, np.int64(20_000), bench.arrays[0], bench.arrays[0], np.uint64(memory.ptr))
    count = KernelCall(
        "count",
        CudaLaunch.from_kernel(kernel, (1,), (WIDTH,), args),
        (bench.ids[0],),
        (),
        (bench.table.intern("host"),),
    )
    for completion in ("events", "polling"):
        seen: list[int] = []
        host[:] = 0

        def emitter(seen: list[int] = seen) -> Iterator[KernelCall | AwaitCounts]:
            for _ in range(3):
                yield count
                yield AwaitCounts(count)
                seen.append(int(host[0]))

        executor = make_executor("streams", segments=bench.table, completion=completion, record="order")
        executor.run([emitter(), bench.random_calls(3, 60)])
        executor.synchronize()
        assert len(set(seen)) == 3
        assert seen[-1] == int(host[0])
        executor.close()


def test_a_refused_launch_is_named(cupy: Any, kernel: Any) -> None:
    bench = Bench(cupy, kernel)
    good = bench.random_calls(1, 20)
    args = (0, np.int64(0), bench.arrays[0], bench.arrays[0], bench.arrays[1])
    bad = KernelCall("too wide", CudaLaunch.from_kernel(kernel, (1,), (4096,), args), (bench.ids[0],), (bench.ids[1],))
    for executor in executors(bench.table, "off"):
        if executor.name.startswith("graph"):
            executor.close()  # names a graph, not a call
            continue
        with pytest.raises(CallError, match="call 'too wide'"):
            executor.run([[*good, bad, *good]])
        assert executor.run([good]).counters.calls == 20
        executor.synchronize()
        executor.close()


def test_one_list_on_two_gpus(cupy: Any, kernel: Any) -> None:
    if cupy.cuda.runtime.getDeviceCount() < 2:
        pytest.skip("needs two GPUs")
    table = Segments()
    on, arrays = [Calls(table, gpu=gpu) for gpu in (0, 1)], []
    for gpu in (0, 1):
        with cupy.cuda.Device(gpu):
            arrays.append([cupy.full(WIDTH, 1 + gpu, np.uint64) for _ in range(3)])
            cupy.cuda.runtime.deviceSynchronize()
    wanted = [[array.get() for array in own] for own in arrays]

    def mix(gpu: int) -> KernelCall:
        a, b, out = arrays[gpu]
        return on[gpu].kernel(kernel, (1,), (WIDTH,), 1, np.int64(100_000), read(a), read(b), update(out))

    calls = [
        mix(0),
        mix(1),
        mix(0),
        on[1].copy(arrays[1][0], arrays[0][2]),
        mix(1),
        on[0].copy(arrays[0][1], arrays[1][2]),
    ]
    calls.append(mix(0))
    with make_executor("streams", segments=table, gpus=(0, 1)) as executor:
        for _ in range(3):
            executor.run([calls])
        executor.synchronize()
    for _ in range(3):
        for step in (0, 1, 0, "there", 1, "back", 0):
            if step == "there":
                wanted[1][0] = wanted[0][2].copy()
            elif step == "back":
                wanted[0][1] = wanted[1][2].copy()
            else:
                a, b, out = wanted[step]
                out[:] = out * np.uint64(31) + a * np.uint64(6364136223846793005) + b * np.uint64(3) + np.uint64(1)
    assert all(
        (x.get() == y).all()
        for own, theirs in zip(arrays, wanted, strict=True)
        for x, y in zip(own, theirs, strict=True)
    )
