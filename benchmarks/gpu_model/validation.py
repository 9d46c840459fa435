"""Compares predictions with measurements: the times of a step, and the order of the executors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Any

from benchmarks.gpu_model.data import Workload, predicted
from benchmarks.gpu_model.fit import rms
from simengine_scheduler.gpu_model import GpuSpec

APART = 1.05
"""Least ratio of two measured times whose order the model must reproduce. Closer times change order between runs."""


def order_reproduced(pairs: Sequence[tuple[float, float]], apart: float = APART) -> tuple[int, int]:
    """Count pairs of executors whose order the model reproduces.

    Args:
        pairs: measured and predicted time of each executor.
        apart: least ratio of two measured times that counts as an order.

    Returns:
        The number of pairs in the measured order, and the number of pairs whose measured times have an order.
    """
    right = every = 0
    for (a, b), (c, d) in combinations(pairs, 2):
        if max(a, c) >= apart * min(a, c):
            every += 1
            right += (a - c) * (b - d) > 0
    return right, every


def kendall(right: int, every: int) -> float:
    """Kendall's tau over the pairs that have an order: 1 if all are reproduced, -1 if all are reversed."""
    return 2 * right / every - 1 if every else 1.0


def validate_workload(workload: Workload, gpu: GpuSpec, fitted: bool) -> dict[str, Any]:
    """Times, errors and order of the measurements of a workload."""
    rows = []
    for m in workload.measured:
        us = predicted(workload.lists[m.emission], m.executor, gpu)
        rows.append({**m._asdict(), "predicted_us": round(us, 1), "ratio": round(us / m.us, 3)})
    right, every = order_reproduced([(row["us"], row["predicted_us"]) for row in rows])
    return {
        "workload": workload.name,
        "fitted": fitted,
        "calls": {emission: len(recorded.calls) for emission, recorded in workload.lists.items()},
        "rows": rows,
        "rms_log": round(rms([math.log(row["ratio"]) for row in rows]), 3),
        "pairs_in_order": right,
        "pairs": every,
        "tau": round(kendall(right, every), 3),
        "fastest_measured": fastest([(row["executor"], row["us"]) for row in rows]),
        "fastest_predicted": fastest([(row["executor"], row["predicted_us"]) for row in rows]),
    }


def fastest(times: Sequence[tuple[str, float]]) -> str:
    """The fastest executor and those within a factor of `APART` of it, sorted by name."""
    least = min(us for _, us in times)
    return ", ".join(sorted({name for name, us in times if us < APART * least}))
