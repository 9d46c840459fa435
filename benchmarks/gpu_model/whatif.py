"""What-if questions: the duration of a step [us] with other windows, streams, GPU sizes and launch costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from benchmarks.gpu_model.data import Workload, predicted, with_host
from simengine_scheduler.gpu_model import GpuSpec

WINDOWS = (8, 16, 32, 64, 128)
STREAMS = (1, 2, 4, 8, 16, 32)
SIZES = (0.25, 0.5, 1.0, 2.0)
LAUNCHES = (0.0, 1.0, 2.0, 3.0, 5.0)
WAKES = (0.0, 1.0, 2.0)
MODELS = ("serial", "streams", "graph-cached", "acs-sw", "acs-hw", "device")


def larger(gpu: GpuSpec, factor: float) -> GpuSpec:
    """The same GPU with `factor` times as many multiprocessors."""
    return replace(gpu, multiprocessors=max(1, round(factor * gpu.multiprocessors)), reference=gpu)


def faster_launches(gpu: GpuSpec, us: float) -> GpuSpec:
    """The machine with launches of kernels and graphs that take `us`, and queues that take a sixth of that."""
    return with_host(gpu, launch=1e-6 * us, launch_graph=1e-6 * us, launch_workers=3e-6 * us, send=1e-6 * us / 6)


def questions(gpu: GpuSpec) -> Iterator[tuple[str, float, GpuSpec, str]]:
    """The questions: name of the table, value, machine, and options of the executor."""
    for window in WINDOWS:
        yield "window", window, gpu, f"window={window}"
    for streams in STREAMS:
        yield "streams", streams, gpu, f"streams={streams}"
    for size in SIZES:
        yield "multiprocessors", max(1, round(size * gpu.multiprocessors)), larger(gpu, size), ""
    for us in LAUNCHES:
        yield "launch_us", us, faster_launches(gpu, us), ""


def what_if(workload: Workload, gpu: GpuSpec, models: Sequence[str] = MODELS) -> list[dict[str, Any]]:
    """A row for each question, with the time of a step under each model."""
    recorded = workload.lists.get("ahead") or workload.lists["counted"]
    rows = []
    for table, value, machine, options in questions(gpu):
        row: dict[str, Any] = {"workload": workload.name, "what": table, "value": value}
        for model in models:
            text = f"{model}:{options}" if options else model
            row[model] = round(predicted(recorded, text, machine, 3), 1)
        rows.append(row)
    return rows


def ready_sets(workload: Workload, gpu: GpuSpec) -> dict[str, Any]:
    """The time of a step under `device`, and if its blocks took tiles of ready calls, as in ACS-HW [us]."""
    recorded = workload.lists["ahead"]
    row = {"workload": workload.name, "in_program_order": round(predicted(recorded, "device", gpu), 1)}
    for us in WAKES:
        row[f"ready_wake_{us:g}_us"] = round(predicted(recorded, "device", replace(gpu, wake=1e-6 * us)), 1)
    return row
