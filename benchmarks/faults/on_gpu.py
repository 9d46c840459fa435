"""Faults on the GPU of this process, each of which prints what came of it as a line of JSON.

    python -m benchmarks.faults.on_gpu write '{"executor": "serial", "emission": "counted"}'
    python -m benchmarks.faults.on_gpu memory '{"executor": "graph-cached"}' 4096 65536

A write where no memory is ends the context of the GPU, and so the use of the process.
"""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from simengine import BackendError, Simulation
from simengine.emission import store
from simengine_scheduler import CallError
from simengine_scheduler.cuda.setup import set_up_stream

_BEYOND = 64  # an address at which no memory is
_WORLDS, _STEPS = 200, 60  # in which memory ends


def write_beyond(options: dict[str, Any]) -> dict[str, Any]:
    """Let a kernel write where no memory is: whether the error says that it is fatal, the call it names, its text."""
    sim = Simulation("ant", 64, backend="cuda", **options)
    sim.step(2)
    sim.synchronize()
    sim._engine.stores[0].buffer("qvel").rebind(_BEYOND, 8)  # type: ignore[attr-defined]
    try:
        sim.step(2)
        sim.synchronize()
    except CallError as error:
        return {"fatal": error.fatal, "call": error.call.name, "said": str(error)}
    return {"fatal": False, "call": "", "said": ""}


@contextmanager
def memory_left(more: int) -> Iterator[None]:
    """Let CuPy's pool have no more than `more` bytes beyond what is in use, so that whatever grows asks for them."""
    import cupy

    pool: Any = cupy.get_default_memory_pool()
    gc.collect()
    pool.free_all_blocks()
    pool.set_limit(size=pool.total_bytes())
    held = []
    with set_up_stream():  # what is free inside the pool
        for power in range(24, 8, -1):
            try:
                while True:
                    held.append(cupy.cuda.alloc(1 << power))
            except cupy.cuda.memory.OutOfMemoryError:
                continue
    pool.set_limit(size=pool.total_bytes() + more)
    try:
        yield
    finally:
        pool.set_limit(size=0)
        held.clear()


def end_memory(made: Callable[[], Simulation], steps: int, sizes: list[int]) -> Iterator[dict[str, Any]]:
    """Let memory end in a step at each of several sizes, and go on with the same simulation once there is memory.

    Arenas should have room for one entry at first (`store.first_entries`), so that they grow in the step.

    Yields: "more", the bytes that were left; "said", the error or None; "same", whether the worlds have the bits of a
        run with memory afterwards.
    """
    with made() as sim:
        expected = _bits(sim, steps)
    for more in sizes:
        said = None
        with made() as sim:
            with memory_left(more):
                try:
                    sim.step(steps)
                    sim.synchronize()
                except (BackendError, MemoryError) as error:
                    said = str(error)
            yield {"more": more, "said": said, "same": _bits(sim, steps) == expected}


def _bits(sim: Simulation, steps: int) -> bytes:
    """The coordinates of all worlds after some steps from the reference configuration."""
    import cupy

    sim.reset()
    sim.step(steps)
    found: bytes = cupy.asnumpy(sim.qpos).tobytes()
    return found


def main() -> int:
    """Inject the fault of the command line."""
    what, options = sys.argv[1], json.loads(sys.argv[2])
    if what == "write":
        print(json.dumps(write_beyond(options)))
        return 0
    store.first_entries = lambda *_: 1

    def made() -> Simulation:
        return Simulation("ant", _WORLDS, backend="cuda", **options)

    for told in end_memory(made, _STEPS, [int(size) for size in sys.argv[3:]]):
        print(json.dumps(told), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
