"""The page on executors has the figures of executor `device` on robots by stages, and of other schedulers."""

from __future__ import annotations

import json
from statistics import geometric_mean
from typing import Any

from tests.benchmarks.test_executor_evidence import PAGE, ROOT, says

ROBOTS = ("ant", "grasp", "half_cheetah", "humanoid", "walker2d")
LISTS = ("population", "products", "clients", "skipping")
SYSTEMS = {
    "stream": "one stream, in C++",
    "graph": "CUDA graphs, in C++",
    "taskflow": "Taskflow, `tf::cudaGraph`",
    "cudastf": "CUDASTF, on streams",
    "cudastf-graph": "CUDASTF, as a graph",
    "serial": "`serial`",
    "streams": "`streams`",
    "graph-cached": "`graph-cached`",
}


def rows_of(name: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads((ROOT / "benchmarks/results" / name).read_text(encoding="utf-8"))["rows"]
    return rows


def test_device_on_robots_by_stages() -> None:
    rows = rows_of("device_robots_h200.json")
    assert all(row["good"] for row in rows)
    us = {(row["workload"].partition(":")[0], row["executor"]): row["us_per_step"] for row in rows}
    over = {way: [us[robot, "serial"] / us[robot, way] for robot in ROBOTS] for way in ("device", "graph-cached")}
    for robot, ratio in zip(ROBOTS, over["device"], strict=True):
        times = " | ".join(f"{us[robot, way]:.0f}" for way in ("serial", "graph-cached", "device"))
        assert f"| {robot} | {times} | {ratio:.2f} |" in PAGE
    device, graphs = over["device"], over["graph-cached"]
    says(
        f"`device` is {geometric_mean(device):.2f} times as fast as `serial` ({min(device):.2f} to {max(device):.2f}), "
        f"and kept graphs are {geometric_mean(graphs):.2f} times as fast ({min(graphs):.2f} to {max(graphs):.2f})"
    )


def test_other_schedulers_on_lists_that_vary() -> None:
    rows = rows_of("scheduler_peers_h200.json")
    assert all(row["equal"] and not row["error"] for row in rows)
    found = {(row["system"], row["workload"]): row for row in rows}
    for system, shown in SYSTEMS.items():
        cells = [found[system, name] for name in LISTS]
        times = " | ".join(f"{cell['us_per_step']:,.0f} ({_three(cell['spread'])})" for cell in cells)
        assert f"| {shown} | {times} |" in PAGE
    others, one = [], []
    for name in LISTS:
        own = found["streams", name]["us_per_step"]
        schedule = ("graph", "taskflow", "cudastf", "cudastf-graph")
        others.append(min(found[system, name]["us_per_step"] for system in schedule) / own)
        one.append(found["stream", name]["us_per_step"] / own)
    says(
        f"`streams` is {min(others):.1f} to {max(others):.1f} times as fast as the fastest of the others that "
        f"schedule, and {min(one):.1f} to {max(one):.1f} times as fast as one stream in C++"
    )


def _three(spread: float) -> str:
    return f"{spread:.2f}" if spread < 10 else f"{spread:.1f}"
