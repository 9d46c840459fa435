"""Workers of a device are linked once and in parallel. A stand-in loads them, so that no GPU is needed."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from simengine_scheduler.device import programs
from simengine_scheduler.device.linking import compile_body
from simengine_scheduler.device.programs import CudaPrograms
from simengine_scheduler.device.workers import Kind
from tests.scheduler.device.test_linking import ELF, body

pytest.importorskip("cuda.bindings.nvjitlink")
NARROW, WIDE = Kind(32, 64), Kind(128, 64)
A, B, C = (body(name, 32, "x[threadIdx.x] *= 2.0f;") for name in ("a", "b", "c"))
BLOCK = body("of_a_block", 128, "x[threadIdx.x] = *own; __syncthreads();")


class Loaded:
    """A module of machine code; its one function has a number of its own."""

    number = 0

    def load(self, code: bytes) -> None:
        assert code[:4] == ELF
        Loaded.number += 1
        self.ptr = Loaded.number

    def get_function(self, name: str) -> Any:
        return SimpleNamespace(ptr=self.ptr)


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A CuPy that says it is an H200's and loads nothing."""
    attributes = {
        "MultiProcessorCount": 132,
        "MaxRegistersPerMultiprocessor": 65536,
        "MaxSharedMemoryPerMultiprocessor": 233472,
        "MaxThreadsPerMultiProcessor": 2048,
    }
    driver = ModuleType("cupy.cuda.driver")
    driver.__dict__.update(
        funcSetAttribute=lambda *_: None, funcGetAttribute=lambda *_: 40, CU_FUNC_ATTRIBUTE_NUM_REGS=4
    )
    cuda = ModuleType("cupy.cuda")
    cuda.__dict__.update(
        driver=driver,
        Device=lambda: SimpleNamespace(compute_capability="90", attributes=attributes),
        function=SimpleNamespace(Module=Loaded),
    )
    root = ModuleType("cupy")
    root.__dict__.update(cuda=cuda)
    for name, module in (("cupy", root), ("cupy.cuda", cuda), ("cupy.cuda.driver", driver)):
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(programs, "set_up_stream", lambda: None)


class Keeping:
    """Keeps nothing; notes who links, and holds the first of `together` back until all of them are there."""

    def __init__(self, together: int = 1) -> None:
        self.keys: list[str] = []
        self._met = threading.Barrier(together)

    def __call__(self, key: str, make: Callable[[], bytes]) -> bytes:
        self.keys.append(key)
        self._met.wait(timeout=60)
        return make()


def test_workers_of_two_classes_are_linked_side_by_side(cupy: None) -> None:
    programs = CudaPrograms(Keeping(together=2))
    found = programs.workers_of({NARROW: frozenset([A, B]), WIDE: frozenset([BLOCK])})
    assert found[NARROW].bodies == (A, B)
    assert found[WIDE] == ((BLOCK,), 40)
    assert programs.function(NARROW, (A, B)) != programs.function(WIDE, (BLOCK,))


def test_a_worker_is_linked_once_and_runs_lists_of_fewer_bodies(cupy: None) -> None:
    keep = Keeping()
    programs = CudaPrograms(keep)
    first = programs.workers_of({NARROW: frozenset([A, B])})
    assert programs.workers_of({NARROW: frozenset([B])}) == first
    assert len(keep.keys) == 1
    assert programs.workers_of({NARROW: frozenset([B, C])})[NARROW].bodies == (B, C)
    assert len(keep.keys) == 2
    assert programs.workers_of({NARROW: frozenset([A])}) == first


def test_a_body_that_does_not_compile_is_named_where_its_worker_is_needed(cupy: None) -> None:
    def broken() -> bytes:
        return compile_body("this is no C++", "broken", 90)

    programs = CudaPrograms(None)
    with pytest.raises(RuntimeError, match="NVRTC could not compile broken.cu for sm_90"):
        programs.workers_of({NARROW: frozenset([type(A)("broken", broken)])})
    assert programs.workers_of({NARROW: frozenset([A])})[NARROW].bodies == (A,)


class SetUpStream:
    """A stream that notes whether it is current."""

    current = False

    def __init__(self) -> None:
        self.waits = 0

    def __enter__(self) -> None:
        self.current = True

    def __exit__(self, *_: object) -> None:
        self.current = False

    def synchronize(self) -> None:
        self.waits += 1


def test_tables_take_no_memory_of_the_stream_of_the_caller(cupy: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """CuPy's pool gives memory that was freed on a stream to that stream, also while kernels still write to it."""
    stream = SetUpStream()
    monkeypatch.setattr(programs, "set_up_stream", lambda: stream)
    filled: list[tuple[bool, int]] = []

    def asarray(array: np.ndarray) -> np.ndarray:
        filled.append((stream.current, stream.waits))
        return array.copy()

    monkeypatch.setattr(sys.modules["cupy"], "asarray", asarray, raising=False)
    np.testing.assert_array_equal(CudaPrograms(None).upload(np.arange(5)), np.arange(5))
    assert filled == [(True, 0)]
    assert stream.waits == 1
