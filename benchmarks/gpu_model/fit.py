"""The constants of a machine: some are taken from what empty kernels show, the others fitted to two workloads.

What is fitted: the host's Python for each call (`emit`, `keep`, `track`, `plan`), and for each graph that is built and
its nodes (`build`, `build_node`); on the device, `crossing`, of which empty kernels show too little. `resolve` is not:
in a list that has come before, no combination of segments is unknown. The measure is the root mean square of the
logarithms of predicted over measured times of a step, over every executor and emission of the two workloads.
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
"""Towards the first values, so that a constant on which no measurement depends stays there."""

VISIBLE = 1e-6
"""Of the turnaround of an empty kernel, what is said to lie behind its end [s]; the rest lies before its start."""


def from_costs(gpu: GpuSpec, costs: Mapping[str, float]) -> GpuSpec:
    """A machine with what `benchmarks.launch_costs` measured, where it did."""
    host = {name: costs[name] for name in ("launch", "record", "wait", "query") if name in costs}
    device: dict[str, Any] = {"chain": costs["chain"]} if "chain" in costs else {}
    if "marked_chain" in costs:
        device["mark"] = max(0.0, costs["marked_chain"] - costs["chain"]) / 2
    if "turnaround" in costs:
        seen = VISIBLE + costs["query"] / 2  # on average, half a query passes before one can tell
        device |= {"visible": VISIBLE, "dispatch": max(0.0, costs["turnaround"] - costs["launch"] - seen)}
    if "graph_chain" in costs:
        host["launch_graph"] = costs["launch"]
        host["launch_node"] = max(0.0, costs["graph_launch"] - costs["launch"]) / 200
        device |= {"node": costs["graph_chain"], "spacing": min(costs["graph_wide"], costs["chain"])}
    return with_host(replace(gpu, **device), **host)


def with_free(gpu: GpuSpec, values: Sequence[float]) -> GpuSpec:
    """The machine with other values of what is fitted, in the order of `FREE`."""
    *host, crossing = map(float, values)
    return with_host(replace(gpu, crossing=crossing), **dict(zip(FREE, host, strict=False)))


def residuals(gpu: GpuSpec, workloads: Sequence[Workload], repeats: int) -> list[float]:
    """Logarithms of predicted over measured time, of every measurement."""
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
    """The machine whose free constants come closest to what was measured of some workloads."""
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
