"""The CUDA backend waits for memory that it fills: after each array, or once for many. These tests need no GPU."""

from __future__ import annotations

from contextlib import nullcontext
from threading import Thread, local
from types import SimpleNamespace

import numpy as np
import pytest

from simengine.backends.cuda import CudaBackend


class SetUpStream(nullcontext[None]):
    """Counts how often the host waits for it."""

    waits = 0

    def synchronize(self) -> None:
        self.waits += 1


@pytest.fixture
def backend() -> CudaBackend:
    """A backend whose arrays are of NumPy, without a look for a device."""
    made = object.__new__(CudaBackend)
    made._cupy = SimpleNamespace(zeros=np.zeros, asarray=np.asarray)
    made._setup, made._patience, made._filling = SetUpStream(), None, local()
    return made


def test_the_host_waits_after_each_array_or_once_at_the_end(backend: CudaBackend) -> None:
    stream = backend._setup
    backend.zeros((2,), "float32")
    backend.upload(np.ones(2))
    assert stream.waits == 2
    with backend.filling():
        with backend.filling():
            backend.zeros((2,), "float32")
        backend.upload(np.ones(2))
        assert stream.waits == 2
    assert stream.waits == 3
    backend.zeros((2,), "float32")
    assert stream.waits == 4


def test_other_threads_wait_for_their_own_memory(backend: CudaBackend) -> None:
    with backend.filling():
        other = Thread(target=backend.zeros, args=((2,), "float32"))
        other.start()
        other.join()
        assert backend._setup.waits == 1


def test_the_host_waits_after_an_error(backend: CudaBackend) -> None:
    with pytest.raises(MemoryError), backend.filling():
        raise MemoryError
    assert backend._setup.waits == 1


def test_memory_is_expected_in_one_block_of_bounded_size_or_not_at_all(backend: CudaBackend) -> None:
    asked: list[int] = []

    def alloc(nbytes: int) -> None:
        asked.append(nbytes)
        if nbytes == 7:
            raise MemoryError

    backend._cupy.cuda = SimpleNamespace(alloc=alloc)
    for nbytes in (5, 7, 2**40):
        backend.expect(nbytes)
    assert asked == [5, 7, 2**26]
