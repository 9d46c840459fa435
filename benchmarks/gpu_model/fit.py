"""Finds the constants of a machine: some are measured with empty kernels, the others are fitted to two workloads.

The fitted constants are the times of Python on the host for each call (`emit`, `keep`, `track`, `plan`) and for each
graph and its nodes (`build`, `build_node`), and `crossing` on the device, which empty kernels underestimate. `resolve`
is not fitted, since a list that comes again has no new combinations of segments. The error is the root mean square of
log(predicted / measured time of a step), over every executor and emission of the two workloads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.gpu_model.data import REPEATS, Workload, predicted, with_host
from simengine_scheduler.gpu_model import GpuSpec

FREE = ("emit", "keep", "track", "plan", "build", "build_node", "crossing")
FIRST = (3e-6, 1e-6, 4e-6, 12e-6, 50e-6, 10e-6, 2e-6)
LARGEST = (20e-6, 10e-6, 20e-6, 50e-6, 1e-3, 50e-6, 20e-6)
PULL = 0.02
"""Weight of a pull towards the first values, so that a constant on which no measurement depends stays there."""

VISIBLE = 1e-6
"""Assumed part of an empty kernel's turnaround that follows its end [s]. The rest precedes its start."""


def from_costs(gpu: GpuSpec, costs: Mapping[str, float]) -> GpuSpec:
    """The machine with the constants that `benchmarks.launch_costs` measured."""
    host = {name: costs[name] for name in ("launch", "record", "wait", "query") if name in costs}
    device: dict[str, Any] = {"chain": costs["chain"]} if "chain" in costs else {}
    if "marked_chain" in costs:
        device["mark"] = max(0.0, costs["marked_chain"] - costs["chain"]) / 2
    if "turnaround" in costs:
        seen = VISIBLE + costs["query"] / 2  # on average, the end falls in the middle of a query
        device |= {"visible": VISIBLE, "dispatch": max(0.0, costs["turnaround"] - costs["launch"] - seen)}
    if "graph_chain" in costs:
        host["launch_graph"] = costs["launch"]
        host["launch_node"] = max(0.0, costs["graph_launch"] - costs["launch"]) / 200
        device |= {"node": costs["graph_chain"], "spacing": min(costs["graph_wide"], costs["chain"])}
    return with_host(replace(gpu, **device), **host)


def with_free(gpu: GpuSpec, values: Sequence[float]) -> GpuSpec:
    """The machine with other values of the fitted constants, in the order of `FREE`."""
    *host, crossing = map(float, values)
    return with_host(replace(gpu, crossing=crossing), **dict(zip(FREE, host, strict=False)))


def residuals(gpu: GpuSpec, workloads: Sequence[Workload], repeats: int) -> list[float]:
    """log(predicted / measured time) of every measurement."""
    return [
        math.log(predicted(workload.lists[m.emission], m.executor, gpu, repeats) / m.us)
        for workload in workloads
        for m in workload.measured
    ]


def fit(
    gpu: GpuSpec,
    workloads: Sequence[Workload],
    repeats: int = REPEATS,
    progress: Callable[[str], None] = lambda text: None,
) -> GpuSpec:
    """Fit the free constants of a machine to the measurements of some workloads.

    Args:
        gpu: the machine with first values.
        workloads: workloads with measurements.
        repeats: number of steps in a prediction.
        progress: called with a line of text now and then.
    """
    from scipy.optimize import least_squares

    scale = np.array(FIRST)

    def misses(values: np.ndarray) -> list[float]:
        found = residuals(with_free(gpu, values * scale), workloads, repeats)
        progress(f"{dict(zip(FREE, (values * scale).tolist(), strict=True))}: rms {rms(found):.3f}")
        return [*found, *(PULL * (values - 1.0))]

    limits = (np.zeros(len(FREE)), np.array(LARGEST) / scale)
    result = least_squares(
        misses, np.ones(len(FREE)), bounds=limits, diff_step=0.1, loss="soft_l1", f_scale=0.1, xtol=1e-3, ftol=1e-3
    )
    return with_free(gpu, result.x * scale)


def rms(values: Sequence[float]) -> float:
    """Root mean square."""
    return math.sqrt(sum(value * value for value in values) / len(values))
