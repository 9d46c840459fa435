"""Calls whose segments follow from arrays: ranges, accesses, address functions, copies, and calls that say nothing."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from simengine_scheduler import Calls, Segments, make_executor, read, update, write
from simengine_scheduler.core.hazards import conflict
from simengine_scheduler.launch import Buffer, BufferSet, StreamLaunch
from simengine_scheduler.launch.arrays import bytes_of, is_array


def test_bytes_of_arrays() -> None:
    array = np.zeros((4, 6), np.float32)
    start = array.ctypes.data
    assert bytes_of(array) == (start, 96)
    assert bytes_of(array[1]) == (start + 24, 24)
    assert bytes_of(array[:, 2:4]) == (start + 8, 3 * 24 + 8)
    assert bytes_of(array[::-1]) == (start, 96)
    assert bytes_of(array[:0])[1] == 0
    assert bytes_of(BufferSet().add("x", 4096, 64)) == (4096, 64)
    with pytest.raises(TypeError, match="a list is no array"):
        bytes_of([1.0])
    assert [is_array(value) for value in (array, 3, np.float32(3), None, array[0])] == [True, False, False, False, True]


def test_bytes_of_jax_arrays() -> None:
    jax = pytest.importorskip("jax")
    array = jax.numpy.arange(12.0).reshape(3, 4)
    start, nbytes = bytes_of(array)
    assert (start, nbytes) == (array.unsafe_buffer_pointer(), array.nbytes)
    assert is_array(array)


def test_bytes_of_torch_arrays() -> None:
    torch = pytest.importorskip("torch")
    array = torch.zeros((4, 6))
    assert bytes_of(array[:, 2:4]) == (array.data_ptr() + 8, 3 * 24 + 8)


class Tensor:
    """An array with the interface of PyTorch's arrays on the host."""

    def __init__(self, array: np.ndarray) -> None:
        self._array, self.shape = array, array.shape

    def data_ptr(self) -> int:
        return self._array.ctypes.data

    def element_size(self) -> int:
        return self._array.itemsize

    def stride(self) -> tuple[int, ...]:
        return tuple(stride // self._array.itemsize for stride in self._array.strides)


def test_bytes_of_strided_tensors() -> None:
    array = np.zeros((4, 6), np.float32)
    assert bytes_of(Tensor(array[::2, 1:3])) == bytes_of(array[::2, 1:3])


def nothing(*arguments: Any) -> None:
    pass


def test_accesses_are_segments_of_the_arrays() -> None:
    segments = Segments()
    calls, x, y = Calls(segments), np.zeros(8), np.zeros(8)
    one = calls.on_host(nothing, 3, read(x), write(y[:4]))
    other = calls.on_host(nothing, read(x[2:]), update(y[4:]))
    third = calls.on_host(nothing, y, name="third")
    assert (len(one.reads), len(one.writes), len(one.updates)) == (1, 1, 0)
    assert (third.name, len(third.updates)) == ("third", 1)
    assert not conflict(one, other, segments.conflicts)  # both read x, and parts of y are disjoint
    assert conflict(one, third, segments.conflicts)
    assert conflict(other, third, segments.conflicts)


def test_an_address_function_says_what_a_kernel_touches() -> None:
    segments, x = Segments(), np.zeros(8)
    calls = Calls(segments)

    def halves(n: int, array: np.ndarray) -> Any:
        start, nbytes = bytes_of(array)
        return [(start, nbytes // 2)], [array[n:]]

    call = calls.on_host(nothing, 4, x, addresses=halves)
    assert [segments.describe(s).split("[")[1] for s in (*call.reads, *call.writes)] == [
        f"{x.ctypes.data:#x}:{x.ctypes.data + 32:#x}]",
        f"{x.ctypes.data + 32:#x}:{x.ctypes.data + 64:#x}]",
    ]


def test_a_call_that_says_nothing_comes_after_all_and_before_all() -> None:
    segments, x, y, done = Segments(), np.zeros(4), np.zeros(4), list[str]()
    calls = Calls(segments)

    def note(name: str, *arrays: np.ndarray) -> None:
        done.append(name)

    named = segments.intern("named")
    first = calls.on_host(note, "first", update(x))
    silent = calls.on_host(note, "silent")
    second = calls.on_host(note, "second", update(y))  # whose segment is younger than that of everything
    assert conflict(silent, silent, segments.conflicts)
    assert conflict(first, silent, segments.conflicts)
    assert conflict(silent, second, segments.conflicts)
    assert not conflict(first, second, segments.conflicts)
    assert named in segments.conflicts[segments.everything()]
    assert segments.everything() in segments.conflicts[named]
    assert segments.intern("everything") != segments.everything()
    for seed in range(10):
        done.clear()
        executor = make_executor("shuffled", segments=segments, seed=seed)
        executor.run([[first, silent, second, first, silent]])
        assert done in (["first", "silent", *order, "silent"] for order in (["first", "second"], ["second", "first"]))


@pytest.mark.parametrize("name", ["serial", "threads", "shuffled"])
def test_copies_and_functions_on_the_host(name: str) -> None:
    segments = Segments()
    calls, x, y = Calls(segments), np.arange(4.0), np.zeros(4)

    def double(array: np.ndarray) -> None:
        array *= 2

    program = [calls.on_host(double, update(x)), calls.copy(y, x), calls.on_host(double, update(x))]
    make_executor(name, segments=segments).run([program])
    assert y.tolist() == [0, 2, 4, 6]
    assert x.tolist() == [0, 4, 8, 12]
    with pytest.raises(ValueError, match="copy from 16 bytes to 32 bytes"):
        calls.copy(y, x[:2])
    with pytest.raises(ValueError, match="no gaps"):
        calls.copy(y[:2], x[::2])


def test_a_library_function_runs_with_the_stream_as_the_current_one(monkeypatch: pytest.MonkeyPatch) -> None:
    current: list[int] = []

    class External:
        def __init__(self, stream: int) -> None:
            self.stream = stream

        def __enter__(self) -> None:
            current.append(self.stream)

        def __exit__(self, *error: object) -> None:
            current.pop()

    class Cuda:
        ExternalStream = External

    class Cupy:
        cuda = Cuda

    monkeypatch.setitem(sys.modules, "cupy", Cupy)  # type: ignore[arg-type]
    seen: list[list[int]] = []
    StreamLaunch(lambda: seen.append(list(current))).issue(7)
    assert (seen, current) == ([[7]], [])


def test_a_buffer_is_an_array() -> None:
    buffers, segments = BufferSet(), Segments()
    x: Buffer = buffers.add("x", 4096, 64)
    assert segments.describe(Calls(segments, buffers).segment(x)) == "array[0x1000:0x1040]"


BARE = """
import sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("jax", "mujoco", "cupy", "torch", "cuda", "simengine", "gymnasium"):
            raise ModuleNotFoundError(f"No module named {name!r}")

sys.meta_path.insert(0, Refuse())
import numpy as np
import simengine_scheduler as scheduler
from simengine_scheduler import device, gpu_model, jobs, planning, service, study, testing
from simengine_scheduler.study.workloads import HostTarget, make_network

segments = scheduler.Segments()
calls, x, y = scheduler.Calls(segments), np.ones(4), np.ones(4)
def double(array):
    array *= 2
for name in ("serial", "shuffled", "threads", "auto", "simulated"):
    with scheduler.make_executor(name, segments=segments) as executor:
        for _ in range(3):
            executor.run([[calls.on_host(double, scheduler.update(each)) for each in (x, y)]])
assert x[0] == y[0] == 2.0**15, x
workload = make_network("population", HostTarget(), rows=4, policies=2)
workload.run(scheduler.make_executor("threads", segments=workload.segments), 2)
for name in ("streams", "graph-cached", "pipeline", "device"):
    try:
        scheduler.make_executor(name, segments=segments)
    except RuntimeError as error:
        assert "need CuPy" in str(error), error
    else:
        raise AssertionError(name)
print("done")
"""


def test_it_needs_neither_jax_nor_mujoco_nor_a_gpu() -> None:
    answer = subprocess.run([sys.executable, "-c", BARE], capture_output=True, text=True, check=False, timeout=120)
    assert (answer.stdout, answer.returncode) == ("done\n", 0), answer.stderr
