"""Predicted against measured: times of a step, and the order of the executors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Any

from benchmarks.gpu_model.data import Workload, predicted
from benchmarks.gpu_model.fit import rms
from simengine_scheduler.gpu_model import GpuSpec

APART = 1.05
"""Times by less than this factor apart are no order to be reproduced: they change places from run to run."""


def order_reproduced(pairs: Sequence[tuple[float, float]], apart: float = APART) -> tuple[int, int]:
    """Of (measured, predicted): pairs in the order measured, and pairs whose measured times are apart."""
    right = every = 0
    for (a, b), (c, d) in combinations(pairs, 2):
        if max(a, c) >= apart * min(a, c):
            every += 1
            right += (a - c) * (b - d) > 0
    return right, every


def kendall(right: int, every: int) -> float:
    """Kendall's tau over the pairs that are apart: 1 all in order, -1 all reversed."""
    return 2 * right / every - 1 if every else 1.0


def validate_workload(workload: Workload, gpu: GpuSpec, fitted: bool) -> dict[str, Any]:
    """Times of each measurement of a workload, how far they are off, and the order."""
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
    """The executor with the least time, and those that are not apart from it, in the order of their names."""
    least = min(us for _, us in times)
    return ", ".join(sorted({name for name, us in times if us < APART * least}))
