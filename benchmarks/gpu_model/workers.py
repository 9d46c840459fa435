"""Compares predictions of executor `device` with results of `simengine bench scheduler` for the same models.

That benchmark starts from other states than the recorded lists do. Both sides are therefore taken relative to kept
graphs (`graph-cached`). The constant `worker` of a machine is fitted to some of the workloads.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.gpu_model.data import Workload, predicted, together
from simengine_scheduler.gpu_model import GpuSpec

BENCHED: dict[str, tuple[str, ...]] = {
    "ant": ("ant x 64",),
    "half_cheetah": ("half_cheetah x 64",),
    "humanoid": ("humanoid x 64",),
    "walker2d": ("walker2d_v5 x 64",),
    "grasp": ("zoo grasp x 64",),
}
"""Names of lists in the benchmark, and the workloads that make up each."""

BENCHED["mixed"] = tuple(name for names in BENCHED.values() for name in names)
LARGEST = 4.0


def measured(paths: Sequence[Path]) -> dict[str, tuple[float, float]]:
    """Read durations of a step ahead of counts [us] under `device` and `graph-cached`, by name of the list."""
    rows = [row for path in paths for row in json.loads(path.read_text())["rows"]]
    times = {(row["workload"], row["executor"]): row.get("us_per_step") for row in rows}
    found = {}
    for name in BENCHED:
        pair = times.get((f"{name}:emission=ahead", "device")), times.get((f"{name}:emission=ahead", "graph-cached"))
        if pair[0] and pair[1]:
            found[name] = pair[0], pair[1]
    return found


def compared(
    workloads: Sequence[Workload], gpu: GpuSpec, times: dict[str, tuple[float, float]], fitted: Sequence[str]
) -> list[dict[str, Any]]:
    """A row for each list that was measured and whose workloads were recorded."""
    by_name = {workload.name: workload for workload in workloads}
    rows = []
    for name, (device, graph) in times.items():
        if not all(part in by_name for part in BENCHED[name]):
            continue
        parts = [by_name[part] for part in BENCHED[name]]
        recorded = (together(parts) if len(parts) > 1 else parts[0]).lists["ahead"]
        us, of_graph = (predicted(recorded, executor, gpu) for executor in ("device", "graph-cached"))
        rows.append(
            {
                "workload": name,
                "fitted": "yes" if all(part in fitted for part in BENCHED[name]) else "",
                "us": round(device, 1),
                "predicted_us": round(us, 1),
                "over_graph": round(device / graph, 3),
                "predicted_over_graph": round(us / of_graph, 3),
            }
        )
    return rows


def fit_worker(
    workloads: Sequence[Workload], gpu: GpuSpec, times: dict[str, tuple[float, float]], fitted: Sequence[str]
) -> GpuSpec:
    """Fit `worker` to the measurements of some workloads. Without measurements the machine is returned as it is."""
    from scipy.optimize import minimize_scalar

    own = {name: pair for name, pair in times.items() if all(part in fitted for part in BENCHED[name])}
    if not own:
        return gpu

    def miss(worker: float) -> float:
        rows = compared(workloads, replace(gpu, worker=worker), own, fitted)
        return sum(math.log(row["predicted_over_graph"] / row["over_graph"]) ** 2 for row in rows)

    found = minimize_scalar(miss, bounds=(1.0, LARGEST), method="bounded", options={"xatol": 0.005})
    return replace(gpu, worker=float(found.x))
