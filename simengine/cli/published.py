"""Published figures that stand beside the measured ones: speed over a serial launch of the same list."""

from __future__ import annotations

from typing import Any

from simengine.cli.workloads import FIVE

PUBLISHED: list[dict[str, Any]] = [
    {
        "system": "ACS-SW",
        "source": "arXiv 2401.12377, on a real GPU",
        "over_serial": {"ant": 1.85, "grasp": 1.74, "humanoid": 1.80, "half_cheetah": 1.73, "walker2d": 1.87},
        "compare_with": "streams:completion=polling",
    },
    {
        "system": "CUDA graph built anew",
        "source": "arXiv 2401.12377, mean of the five simulations",
        "over_serial": {"mean": 0.85},
        "compare_with": "graph",
    },
    {
        "system": "ACS-HW",
        "source": "arXiv 2401.12377, simulated, mean of the five simulations",
        "over_serial": {"mean": 2.00},
        "compare_with": "device",
    },
]
"""Each system's ratios by workload, or their mean, and the executor that is its counterpart here."""


def published_ratio(workload: str, executor: str) -> tuple[str, float] | None:
    """The system and ratio that a paper gives for an executor's counterpart on a workload, by its bare name."""
    for entry in PUBLISHED:
        if entry["compare_with"] == executor and workload in FIVE:
            ratios = entry["over_serial"]
            return str(entry["system"]), float(ratios[workload] if workload in ratios else ratios["mean"])
    return None
