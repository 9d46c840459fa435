"""The device executor on a real GPU: legality, the bits of serial, tilings, counts on the device, stuck lists.

Tests named one_launch need no two kernels at a time, so that a checker may run kernels one by one:

    compute-sanitizer --tool racecheck python -m pytest -m gpu tests/scheduler/test_device_gpu.py -k one_launch
"""

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np
import pytest

from simengine_scheduler import (
    AwaitCounts,
    CallError,
    CudaLaunch,
    Executor,
    KernelCall,
    Segments,
    make_executor,
    validate,
)
from simengine_scheduler.device import compile_body
from simengine_scheduler.launch import DeviceBody, DeviceTask, Tiling

pytestmark = pytest.mark.gpu

SOURCE = r"""
// Tile i mixes 32 numbers: it reads early and writes late, so that an illegal order shows.
static __device__ void mix_tile(int tile, int parts, int strided, int kind, long long cycles,
                                const unsigned long long* a, const unsigned long long* b, unsigned long long* out) {
  const int part = strided ? tile % parts : tile;
  const int lane = threadIdx.x & 31;
  unsigned long long* own = out + 32 * part + lane;
  const unsigned long long before = *own;
  const unsigned long long value = a[32 * part + lane] * 6364136223846793005ull + b[32 * part + lane] * 3ull + 1ull;
  const long long began = clock64();
  while (clock64() - began < cycles) {}
  *own = kind ? before * 31ull + value : value;
}

#define BODY(name)                                                                                      \
  extern "C" __device__ void name(const unsigned long long* s, int tile, char* memory) {                \
    if (threadIdx.x < 32)                                                                               \
      mix_tile(tile, (int)s[0], (int)s[1], (int)s[2], (long long)s[3], (const unsigned long long*)s[4], \
               (const unsigned long long*)s[5], (unsigned long long*)s[6]);                             \
  }
"""
KERNEL = r"""
extern "C" __global__ void mix(int parts, int strided, int kind, long long cycles, const unsigned long long* a,
                               const unsigned long long* b, unsigned long long* out) {
  mix_tile(blockIdx.x, parts, strided, kind, cycles, a, b, out);
}
"""
PARTS, BUFFERS = 64, 6
_CHECKER = {"merged": True, "watchdog": 300.0}
FORMS = pytest.mark.parametrize(
    "form",
    [
        {"hazards": "host"},
        {**_CHECKER, "hazards": "host"},
        {"hazards": "device"},
        {**_CHECKER, "hazards": "device"},
        {"ready": True},
    ],
    ids=["known", "known_one_launch", "window", "window_one_launch", "ready"],
)


@pytest.fixture(scope="module")
def bodies(cupy: Any) -> list[DeviceBody]:
    """The same body for workers of two kinds."""
    arch = int(cupy.cuda.Device().compute_capability)
    made = []
    for name, threads, registers in (("light_mix", 32, 64), ("wide_mix", 128, 128)):
        code = compile_body(f"{SOURCE}\nBODY({name})", name, arch)
        made.append(DeviceBody(name, code, threads, registers))
    return made


class Bench:
    """Arrays, segments and random calls on them, of the whole arrays or by tiles."""

    def __init__(self, cupy: Any, bodies: list[DeviceBody], cycles: int = 3000) -> None:
        self.cupy, self.bodies, self.cycles = cupy, bodies, cycles
        self.kernel = cupy.RawKernel(SOURCE + KERNEL, "mix")
        self.table = Segments()
        self.arrays = [cupy.empty(32 * PARTS, np.uint64) for _ in range(BUFFERS)]
        self.ids = [self.table.intern(f"b{k}") for k in range(BUFFERS)]
        self.reset()

    def reset(self) -> None:
        for k, array in enumerate(self.arrays):
            array[:] = self.cupy.arange(32 * PARTS, dtype=np.uint64) + k

    def bits(self) -> bytes:
        return b"".join(self.cupy.asnumpy(a).tobytes() for a in self.arrays)

    def call(self, name: str, body: int, kind: int, a: int, b: int, out: int, **task: Any) -> KernelCall:
        args = (PARTS, 0, kind, np.int64(self.cycles), self.arrays[a], self.arrays[b], self.arrays[out])
        work = DeviceTask(self.bodies[body], PARTS, **task)
        launch = CudaLaunch.from_kernel(self.kernel, (PARTS,), (32,), args, task=work)
        ids = (self.ids[a], self.ids[b], self.ids[out])
        written = ((), (ids[2],)) if kind else ((ids[2],), ())
        return KernelCall(name, launch, ids[:2], *written, tiled=ids)

    def random_calls(self, seed: int, count: int = 150) -> list[KernelCall]:
        draw = random.Random(seed)
        pick = [
            [draw.randrange(2), draw.randrange(2), *(draw.randrange(BUFFERS) for _ in range(3))] for _ in range(count)
        ]
        return [self.call(f"k{i}", *p) for i, p in enumerate(pick)]


def bits_of_serial(bench: Bench, calls: list[KernelCall]) -> bytes:
    bench.reset()
    executor = make_executor("serial", device="cuda")
    executor.run([calls])
    executor.close()
    return bench.bits()


def expect_bits_of_serial(bench: Bench, calls: list[KernelCall], executor: Executor) -> None:
    wanted = bits_of_serial(bench, calls)
    bench.reset()
    executor.run([calls])
    executor.synchronize()
    assert bench.bits() == wanted


@pytest.mark.parametrize("window", [1, 4, 32, 64])
@pytest.mark.parametrize("tiled", [True, False])
@FORMS
def test_random_lists_are_legal_and_give_the_bits_of_serial(
    cupy: Any, bodies: Any, window: int, tiled: bool, form: Any
) -> None:
    bench = Bench(cupy, bodies)
    for seed in range(3):
        calls = bench.random_calls(seed)
        wanted = bits_of_serial(bench, calls)
        for record in ("off", "times"):
            executor = make_executor("device", segments=bench.table, window=window, tiled=tiled, record=record, **form)
            for _ in range(2):
                bench.reset()
                trace = executor.run([calls])
                assert bench.bits() == wanted
            if record == "times":
                assert validate(calls, trace, bench.table, slack=5e-6) == []
                checked = trace.counters.compare_seconds, trace.counters.check_seconds
                assert 0 < checked[0] < checked[1] if form.get("hazards") != "host" else checked == (0, 0)
            executor.synchronize()
            executor.close()


def test_tiles_of_a_call_start_before_the_call_before_has_ended(cupy: Any, bodies: Any) -> None:
    """A chain by tiles takes less time than one whose calls wait for one another, when tiles take different times."""
    bench = Bench(cupy, bodies, cycles=20_000)
    calls = [bench.call(f"k{i}", 0, 1, 0, 1, 2) for i in range(30)]
    spans = {}
    for tiled in (True, False):
        executor = make_executor("device", segments=bench.table, tiled=tiled, record="times")
        traces = [executor.run([calls]) for _ in range(3)]
        events = traces[-1].events
        spans[tiled] = sum(later.start < earlier.end for earlier, later in itertools.pairwise(events))
        executor.close()
    assert spans[True] > 0
    assert spans[False] == 0


@FORMS
def test_counts_on_the_device_decide_how_many_tiles_work(cupy: Any, bodies: Any, form: Any) -> None:
    bench = Bench(cupy, bodies)
    count = cupy.array([10], np.int32)
    calls = [bench.call("counted", 0, 1, 0, 1, 2, count=count, units=4)]
    executor = make_executor("device", segments=bench.table, **form)
    executor.run([calls])
    changed = cupy.asnumpy(bench.arrays[2]) != np.arange(32 * PARTS, dtype=np.uint64) + 2
    assert changed[: 32 * 3].all()
    assert not changed[32 * 3 :].any()
    executor.close()


@FORMS
def test_awaited_numbers_are_readable(cupy: Any, bodies: Any, form: Any) -> None:
    bench = Bench(cupy, bodies)
    call = bench.call("count", 0, 1, 0, 1, 2)
    seen = []

    def emitter():  # type: ignore[no-untyped-def]
        for _ in range(3):
            yield call
            yield AwaitCounts(call)
            seen.append(bench.bits())

    executor = make_executor("device", segments=bench.table, record="order", **form)
    executor.run([emitter(), bench.random_calls(3, 20)])
    assert len(seen) == 3
    executor.close()


ENDLESS = r"""
extern "C" __device__ void NAME(const unsigned long long* s, int tile, char* memory) {
  const long long began = clock64();
  while (clock64() - began < (long long)s[0]) {}
}
"""


@pytest.mark.parametrize("hazards", ["host", "device"])
@pytest.mark.parametrize("merged", [False, True])
def test_a_stuck_list_is_named_and_the_next_one_runs(cupy: Any, bodies: Any, merged: bool, hazards: str) -> None:
    """A body that takes two seconds, where 0.2 s is taken for stuck."""
    arch = int(cupy.cuda.Device().compute_capability)
    code = compile_body(ENDLESS.replace("NAME", "endless"), "endless", arch)
    bench = Bench(cupy, bodies)
    slow = DeviceTask(DeviceBody("endless", code), 1)
    launch = CudaLaunch.from_kernel(bench.kernel, (1,), (32,), (np.int64(3_000_000_000),), task=slow)
    stuck = KernelCall("endless", launch, (), (), (bench.ids[2],))
    after = bench.call("after", 0, 1, 0, 1, 2)
    executor = make_executor("device", segments=bench.table, watchdog=0.2, merged=merged, hazards=hazards)
    executor.run([[stuck, after]])
    with pytest.raises(CallError, match=r"call 'after', tile \d+, waited 0\.2 s for call 'endless', which has not end"):
        executor.synchronize()
    expect_bits_of_serial(bench, bench.random_calls(5, 30), executor)
    executor.close()


@FORMS
def test_tables_take_no_memory_that_a_pending_kernel_still_writes(cupy: Any, bodies: Any, form: Any) -> None:
    """Arrays that were freed while a kernel of the caller's stream still fills them are not those of the list."""
    slow = cupy.RawKernel(
        r"""
        extern "C" __global__ void fill_late(long long cycles, unsigned* out, int n) {
          const long long began = clock64();
          while (clock64() - began < cycles) {}
          for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) out[i] = 0x5a5a5a5au;
        }""",
        "fill_late",
    )
    bench = Bench(cupy, bodies)
    calls = bench.random_calls(11)
    wanted = bits_of_serial(bench, calls)
    executor = make_executor("device", segments=bench.table, **form)
    for seed in range(4):
        others = bench.random_calls(seed, 100 + seed)  # a list of another size, whose image is new
        kept = [bits_of_serial(bench, others)]
        bench.reset()
        with cupy.cuda.Stream(non_blocking=True) as stream:
            for nbytes in (1 << power for power in range(9, 22)):
                array = cupy.empty(nbytes, np.uint8)
                slow((8,), (64,), (np.int64(2_000_000), array, np.int32(nbytes // 4)))
                del array
            executor.run([others])
            stream.synchronize()
        executor.synchronize()
        kept.append(bench.bits())
        assert kept[0] == kept[1]
    bench.reset()
    executor.run([calls])
    assert bench.bits() == wanted
    executor.close()


@pytest.mark.parametrize("hazards", ["host", "device"])
def test_grids_that_do_not_fit_together_end(
    cupy: Any, bodies: Any, hazards: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks of the first class take all places, as where blocks land otherwise than planned."""
    from simengine_scheduler.device import image, known_image

    planned = image.joint_grids
    for module in (image, known_image):
        monkeypatch.setattr(module, "joint_grids", lambda *given: [40 * grid for grid in planned(*given)])
    bench = Bench(cupy, bodies)
    executor = make_executor("device", segments=bench.table, watchdog=5.0, hazards=hazards)
    for seed in range(3):
        expect_bits_of_serial(bench, bench.random_calls(seed, 60), executor)
    executor.close()


@FORMS
def test_a_row_of_tiles_is_waited_for_together(cupy: Any, bodies: Any, form: Any) -> None:
    bench = Bench(cupy, bodies)
    for tiling in (Tiling("row", 4), Tiling("strided", 16)):
        calls = [bench.call(f"k{i}", i % 2, 1, 0, 1, 2 + i % 2, tiling=tiling) for i in range(20)]
        executor = make_executor("device", segments=bench.table, **form)
        expect_bits_of_serial(bench, calls, executor)
        executor.close()


def test_merged_lists_of_one_class_and_of_several_are_one_launch(cupy: Any, bodies: Any) -> None:
    for kinds in ((0,), (0, 1)):
        bench = Bench(cupy, bodies)
        calls = [bench.call(f"k{i}", kinds[i % len(kinds)], 1, 0, 1, 2) for i in range(8)]
        executor = make_executor("device", segments=bench.table, merged=True)
        expect_bits_of_serial(bench, calls, executor)
        (loaded,) = executor._images.of.values()
        assert len(loaded.launches) == 2  # with the one that resets counters
        executor.close()


def test_merged_bodies_that_wait_for_their_whole_block_are_refused(cupy: Any, bodies: Any) -> None:
    arch = int(cupy.cuda.Device().compute_capability)
    source = 'extern "C" __device__ void halts(const unsigned long long*, int, char*) { __syncthreads(); }'
    bench = Bench(cupy, bodies)
    task = DeviceTask(DeviceBody("halts", compile_body(source, "halts", arch), 64, 64), 1)
    launch = CudaLaunch.from_kernel(bench.kernel, (1,), (64,), (), task=task)
    calls = [KernelCall("halts", launch, (), (), (bench.ids[0],)), bench.call("wide", 1, 1, 0, 1, 2)]
    executor = make_executor("device", segments=bench.table, merged=True)
    with pytest.raises(ValueError, match=r"merged=True cannot run body 'halts' of 64 threads in blocks of 128"):
        executor.run([calls])
    executor.close()
