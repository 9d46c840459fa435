"""Owners for tests, which run functions on NumPy arrays on the host or on a fake device."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from simengine_scheduler import PythonLaunch
from simengine_scheduler.core import Launch
from simengine_scheduler.launch import BufferSet
from simengine_scheduler.service import Client, ClientCall, ClientList, Owner, serve
from simengine_scheduler.service.host import HostKernels
from simengine_scheduler.service.memory import Block
from simengine_scheduler.service.wire import CallMessage
from simengine_scheduler.testing.fake_device import FakeDevice

HOST = ["serial", "shuffled", "threads"]
DEVICE = ["streams", "streams polling", "serial cuda"]


class Blocks:
    """The blocks of memory that an owner has allocated, in order, and those that were freed."""

    def __init__(self) -> None:
        self.given = 0
        self.back: list[int] = []

    @property
    def held(self) -> int:
        """Number of blocks that are allocated and not freed."""
        return self.given - len(self.back)

    def watch(self, block: Block) -> Block:
        """Return the block, after noting its allocation. Its release will be noted too."""
        number, free, self.given = self.given, block.free, self.given + 1

        def freed() -> None:
            self.back.append(number)
            free()

        block.free = freed  # type: ignore[method-assign]
        return block


class WatchedKernels(HostKernels):
    """Functions on the host whose memory is watched."""

    def __init__(self, functions: Mapping[str, Callable[..., None]], blocks: Blocks) -> None:
        super().__init__(functions)
        self._blocks = blocks

    def allocate(self, nbytes: int) -> Block:
        return self._blocks.watch(super().allocate(nbytes))


class FakeKernels(WatchedKernels):
    """Functions that run on a fake device, whose driver refuses to launch `fail_to_launch`."""

    def __init__(self, functions: Mapping[str, Callable[..., None]], blocks: Blocks, device: FakeDevice) -> None:
        super().__init__(functions, blocks)
        self._device = device

    def launch(
        self, kernel: Any, call: CallMessage, args: Sequence[Any], buffers: BufferSet, arrays: Mapping[str, Any]
    ) -> Launch:
        if kernel.function is fail_to_launch:
            return PythonLaunch(fail_to_launch)
        body: Any = super().launch(kernel, call, args, buffers, arrays)
        return self._device.launch(body.function)


def mix(number: int, source: Any, target: Any) -> None:
    """Update a target so that the order of calls shows."""
    target[:] = target * np.uint64(31) + source * np.uint64(6364136223846793005) + np.uint64(number)


def fail() -> None:
    """Raise an error, as a kernel might."""
    raise FloatingPointError("no convergence")


def fail_to_launch() -> None:
    """Stand for a launch that the driver refuses when it is issued."""
    raise ValueError("no convergence")


class Gate:
    """A function that waits until the test lets it go on, so that the test knows what is running."""

    def __init__(self) -> None:
        self.entered, self.open = threading.Event(), threading.Event()

    def __call__(self) -> None:
        self.entered.set()
        assert self.open.wait(20)


def make_owner(kind: str = "threads", address: str | None = None, seed: int = 0, **more: Any) -> Owner:
    """Serve `mix`, `fail` and `more` functions under a kind of executor; `limit`, `device`, `blocks` are options."""
    options = {name: more.pop(name) for name in ("limit", "authkey", "device", "workers") if name in more}
    blocks = more.pop("blocks", None) or Blocks()
    functions: dict[str, Callable[..., None]] = {"mix": mix, "fail": fail, **more}
    name, _, mode = kind.partition(" ")
    if kind in DEVICE:
        device = options.pop("device", None) or FakeDevice(seed, eagerness=0.2)
        options |= {"driver": device, "stream": 0, "kernels": FakeKernels(functions, blocks, device)}
        if mode == "polling":
            options["completion"] = "polling"
        if mode == "cuda":
            options["device"] = "cuda"
    elif name == "threads":
        options.setdefault("workers", 3)
    options.setdefault("kernels", WatchedKernels(functions, blocks))
    return serve(address, name, **options)


def step_of(client: Client, buffers: Sequence[str], calls: int = 6, first: int = 0, graph: bool = False) -> ClientList:
    """Define a list that mixes buffers into each other."""
    kernel, n = client.function("mix"), len(buffers)
    return client.define(
        [
            ClientCall(
                f"mix{k}",
                kernel,
                (first + k, buffers[k % n], buffers[(k + 1) % n]),
                reads=[buffers[k % n]],
                updates=[buffers[(k + 1) % n]],
            )
            for k in range(calls)
        ],
        graph,
    )


def mixed(steps: int, first: int = 0, calls: int = 6, n: int = 3) -> bytes:
    """The result of `steps` runs of the list, from zeros, one call after another."""
    arrays = [np.zeros(4, np.uint64) for _ in range(n)]
    for _ in range(steps):
        for k in range(calls):
            mix(first + k, arrays[k % n], arrays[(k + 1) % n])
    return b"".join(a.tobytes() for a in arrays)
