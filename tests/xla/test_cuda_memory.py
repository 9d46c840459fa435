"""Memory of calls on a GPU is made once, whichever threads ask for it. The GPU itself is stood in for."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from types import SimpleNamespace
from typing import Any

import jax
import pytest

from simengine.xla import cuda_memory
from simengine.xla.structures import CudaMemory

PATIENCE = 10  # seconds after which a thread that waits for ever fails its test


class _Call:
    number, model = 7, None


def a_call() -> Any:
    """A call as `cuda_memory` sees it."""
    return _Call()


class Maker:
    """Makes memory once it is let to, and counts."""

    def __init__(self) -> None:
        self.begun, self.let = Event(), Event()
        self.error: Exception | None = None
        self.made: list[Any] = []

    def __call__(self, call: Any, device: int) -> Any:
        self.begun.set()
        assert self.let.wait(PATIENCE)
        if self.error:
            raise self.error
        self.made.append(SimpleNamespace(structure=CudaMemory()))
        return self.made[-1]


@pytest.fixture
def maker(monkeypatch: pytest.MonkeyPatch) -> Iterator[Maker]:
    made = Maker()
    gpu = SimpleNamespace(local_hardware_id=0)
    monkeypatch.setattr(cuda_memory, "_made", made)
    monkeypatch.setattr(cuda_memory, "when_gone", lambda *arguments: None)
    monkeypatch.setattr(cuda_memory, "load", lambda model: SimpleNamespace(simengine_add=lambda *arguments: None))
    monkeypatch.setattr(jax, "local_devices", lambda backend: [gpu])
    yield made
    made.let.set()


def test_a_trace_goes_on_while_another_thread_makes_the_memory(maker: Maker) -> None:
    call = a_call()
    with ThreadPoolExecutor(2) as pool:
        making = pool.submit(cuda_memory.prepare, call)
        assert maker.begun.wait(PATIENCE)
        pool.submit(cuda_memory.prepare, call).result(PATIENCE)  # it would wait here
        assert not making.done()
        maker.let.set()
        making.result(PATIENCE)
    cuda_memory.prepare(call)
    assert len(maker.made) == 1


def test_a_program_waits_for_memory_that_is_being_made(maker: Maker) -> None:
    call = a_call()
    with ThreadPoolExecutor(2) as pool:
        making = pool.submit(cuda_memory.prepare, call)
        assert maker.begun.wait(PATIENCE)
        running = pool.submit(cuda_memory._memory, call, 0)
        maker.let.set()
        assert running.result(PATIENCE) is maker.made[0]
        making.result(PATIENCE)
    assert len(maker.made) == 1


def test_an_error_is_told_by_both_and_the_next_try_makes_memory(maker: Maker) -> None:
    call, maker.error = a_call(), MemoryError("full")
    with ThreadPoolExecutor(2) as pool:
        making = pool.submit(cuda_memory.prepare, call)
        assert maker.begun.wait(PATIENCE)
        running = pool.submit(cuda_memory._memory, call, 0)
        maker.let.set()
        for told in (making, running):
            with pytest.raises(MemoryError, match="full"):
                told.result(PATIENCE)
    maker.error = None
    cuda_memory.prepare(call)
    assert len(maker.made) == 1
