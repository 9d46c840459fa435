"""Published figures of scheduling systems. Reports show them beside the figures of comparable executors."""

from __future__ import annotations

from typing import Any

from simengine.cli.simulations.workloads import FIVE

PUBLISHED: list[dict[str, Any]] = [
    {
        "system": "ACS-SW",
        "counterpart": "streams:completion=polling",
        "says": "1.73 to 1.87 times serial launch in simulations on a GPU (arXiv 2401.12377)",
        "over_serial": {"ant": 1.85, "grasp": 1.74, "humanoid": 1.80, "half_cheetah": 1.73, "walker2d": 1.87},
    },
    {
        "system": "ACS-HW",
        "counterpart": "device",
        "says": "2.00 times serial launch, mean of the same, on a simulated GPU (arXiv 2401.12377)",
        "over_serial": {"mean": 2.00},
    },
    {
        "system": "CUDA graph built anew",
        "counterpart": "graph",
        "says": "0.85 times serial launch, mean of the same; building took 44 to 58 % of the time (arXiv 2401.12377)",
        "over_serial": {"mean": 0.85},
    },
    {
        "system": "SET",
        "counterpart": "pipeline",
        "says": "1.15 to 1.44 times batching and a shared queue (arXiv 2606.05495)",
        "over_serial": {},
    },
    {
        "system": "KeSCo",
        "counterpart": "streams:stream_policy=kesco",
        "says": "1.28 times with several tasks, 1.22 times with several processes",
        "over_serial": {},
    },
    {
        "system": "Opara",
        "counterpart": "graph-cached:stream_policy=opara",
        "says": "up to 1.68 times a graph in sequence, and 1.29 times Nimble (arXiv 2312.10351)",
        "over_serial": {},
    },
    {
        "system": "cuSync",
        "counterpart": "device:tiled=true",
        "says": "1.06 to 1.22 times kernels that wait for whole kernels (arXiv 2305.13450)",
        "over_serial": {},
    },
]
"""Each system with its counterpart, an executor, and its ratios to serial launch by workload, or their mean."""


def published_ratio(workload: str, executor: str) -> tuple[str, float] | None:
    """Return the published system whose counterpart is an executor, and its ratio to serial launch.

    Args:
        workload: name of the workload without options. The papers simulate small batches.
        executor: spec of the executor.

    Returns:
        (system, ratio), or None if no paper gives a ratio.
    """
    for entry in PUBLISHED:
        ratios = entry["over_serial"]
        if entry["counterpart"] == executor and workload in FIVE and ratios:
            return str(entry["system"]), float(ratios[workload] if workload in ratios else ratios["mean"])
    return None
