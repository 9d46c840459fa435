"""Lists and machines for tests of the simulated executor."""

from __future__ import annotations

from typing import Any

from simengine_scheduler import Segments, make_executor
from simengine_scheduler.gpu_model import GpuSpec, RecordedList
from tests.scheduler.gpu_model.machines import Lists, shaped

USUAL = GpuSpec("usual", multiprocessors=132)


def simulated(table: Segments, model: str, gpu: str | GpuSpec = USUAL, **options: Any) -> Any:
    return make_executor("simulated", segments=table, **{"model": model, "gpu": gpu, "record": "times", **options})


def fan(width: int, length: int, us: float, fixed: bool = True) -> RecordedList:
    """A list of independent chains, whose calls alternate in program order."""
    lists = Lists()
    for _ in range(length):
        for n in range(width):
            lists.add("", chr(ord("A") + n), us, shaped(8))
    return lists.build(fixed)
