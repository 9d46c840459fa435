"""The page `docs/performance.md`: the template, filled with tables and figures from the result files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from . import chart, costs, growth, heaps, kinds, lists, mixed, robots
from .markdown import percent
from .results import ROOT, load, origin, scheduler_rows

PAGE = ROOT / "docs" / "performance.md"
TEMPLATE = Path(__file__).with_name("template.md")

_PILES = ("piles_1_h200", "piles_256_h200", "piles_large_h200")
_PEER_PILES = "peers/piles_mujoco_warp_h200"
_GYMNASIUM = "peers/gymnasium_mujoco_warp_h200"
_ROBOTS = "peers/robots_mujoco_warp_h200"
_ROBOT_KERNELS = "robot_kernels_h200"
_ROBOTS_ON_CPU = "peers/mujoco_rollout_2_cores"
_KINDS = "peers/kinds_mujoco_warp_h200"
_KINDS_ON_CPU = "peers/kinds_mujoco_rollout_2_cores"
_GAINS = ("prisms_h200", "islands_of_bodies_h200", "newton_without_cones_h200")
_PEER_MIXED = "peers/mixed_mujoco_warp_h200"


def page() -> str:
    """The text of the page."""
    return fill(TEMPLATE.read_text(encoding="utf-8"), _values())


def fill(template: str, values: Mapping[str, str]) -> str:
    """Replace each `{{name}}` in a template by its value.

    Raises:
        ValueError: a name has no value, or a value has no name in the template.
    """
    names = set(re.findall(r"\{\{(\w+)\}\}", template))
    if names != set(values):
        odd = ", ".join(sorted(names ^ set(values)))
        raise ValueError(f"template and values of the performance page differ in {odd}; give each name one value")
    filled = re.sub(r"\{\{(\w+)\}\}", lambda match: values[match[1]], template)
    return re.sub(r"\n{3,}", "\n\n", filled)  # a value may be empty


def _values() -> dict[str, str]:
    parts = {**_of_models(), **_of_robots(), **_of_batches(), **_of_lists(), **_of_costs()}
    return {**parts, "growth": growth.growth()}


def _of_models() -> dict[str, str]:
    gpu = robots.Beside(load(_GYMNASIUM), robots.WARP)
    ratios = [point.ratio for point in chart.points() if point.ratio is not None]
    return {
        "cases": str(len(ratios)),
        "cases_lost": str(sum(ratio < 1 for ratio in ratios)),
        "gpu_table": gpu.table(),
        "gpu_held": gpu.held(),
        "gpu_changes": gpu.changes(),
        "gpu_missed": gpu.missed({"rows": []}),
        "gpu_outside": gpu.outside(robots.OURS),
        "gpu_outside_of_peer": gpu.outside(robots.WARP.engine),
        "gpu_without_result": gpu.without_result(),
        "gpu_origin": origin(_GYMNASIUM),
    }


def _of_robots() -> dict[str, str]:
    gpu, cpu = robots.Beside(load(_ROBOTS), robots.WARP), robots.Beside(load(_ROBOTS_ON_CPU), robots.ROLLOUT)
    of_kinds, kinds_on_gpu = load(_KINDS_ON_CPU), robots.Beside(load(_KINDS), robots.WARP)
    return {
        "gpu_kinds_table": kinds_on_gpu.table(),
        "gpu_kinds_held": kinds_on_gpu.held(),
        "gpu_kinds_lost": kinds_on_gpu.lost(),
        "gpu_kinds_outside": kinds_on_gpu.outside(robots.OURS),
        "gpu_kinds_outside_of_peer": kinds_on_gpu.outside(robots.WARP.engine),
        "gpu_kinds_origin": origin(_KINDS),
        "gains_table": kinds.gained([load(name) for name in _GAINS]),
        "gains_origin": origin(*_GAINS),
        "kinds_table": kinds.kinds_table(of_kinds),
        "kinds_held": kinds.held(of_kinds, robots.ROLLOUT.enough),
        "kinds_origin": origin(_KINDS_ON_CPU),
        "cpu_robots_table": cpu.table(),
        "cpu_robots_held": cpu.held(),
        "cpu_robots_batch": robots.Beside(load(_ROBOTS_ON_CPU), robots.BATCH).also(),
        "cpu_robots_enough": f"{robots.ROLLOUT.enough:g}",
        "cpu_robots_lost": cpu.lost(),
        "cpu_robots_outside": cpu.outside(robots.OURS),
        "cpu_robots_origin": origin(_ROBOTS_ON_CPU),
        "public_robots_table": gpu.table(),
        "public_robots_held": gpu.held(),
        "public_robots_enough": f"{robots.WARP.enough:g}",
        "public_robots_lost": gpu.lost(),
        "public_robots_outside": gpu.outside(robots.OURS),
        "public_robots_outside_of_peer": gpu.outside(robots.WARP.engine),
        "public_robots_missed": gpu.missed(load(_ROBOT_KERNELS)),
        "public_robots_without_result": gpu.without_result(),
        "public_robots_origin": origin(_ROBOTS),
        "robots_alone_table": robots.alone(load(_ROBOT_KERNELS)),
        "robots_alone_origin": origin(_ROBOT_KERNELS),
    }


def _of_batches() -> dict[str, str]:
    six, again, alike = load("mixed_h200"), load("mixed_again_h200"), load("mixed_robots_h200")
    piles, peer = [load(name) for name in _PILES], load(_PEER_PILES)
    return {
        "six_table": mixed.six_table(six, again),
        "six_origin": origin("mixed_h200", "mixed_again_h200", _PEER_MIXED),
        "robots_table": mixed.robots_table(alike),
        "robots_origin": origin("mixed_robots_h200"),
        "heaps_table": heaps.heaps_table(piles, peer),
        "heaps_failure": heaps.failure(peer),
        "heaps_lost": heaps.lost(piles, peer),
        "heaps_origin": origin(*_PILES, _PEER_PILES),
    }


def _of_lists() -> dict[str, str]:
    rows = scheduler_rows()
    covered = lists.coverage(rows)
    spreads = [row["spread"] for row in rows if row["executor"] != "auto"]
    return {
        "lists": str(covered["lists"]),
        "lists_of_device": str(covered["device"]),
        "list_repeats": str(lists.repeats(rows)),
        "spread_half": percent(sorted(spreads)[len(spreads) // 2]),
        "spread_most": percent(max(spreads)),
        "fixed_table": lists.executors_table(rows, lists.FIXED),
        "counted_table": lists.executors_table(rows, lists.COUNTED),
        "large_table": lists.executors_table(rows, lists.LARGE),
        "whole_table": lists.whole_table(rows),
        "shards_table": lists.shards_table(rows),
        "shards_lost": lists.lost_by_shards(rows),
        "kept_graphs_table": lists.kept_graphs_table(rows),
        "lists_origin": origin("scheduler_h200", "scheduler_large_h200"),
    }


def _of_costs() -> dict[str, str]:
    calls, graphs = load("clients_h200"), load("clients_graph_h200")
    return {
        "hazards_table": costs.hazards_table(load("hazard_check_h200_host")),
        "hazards_origin": origin("hazard_check_h200_host"),
        "clients_table": costs.clients_table(calls, graphs),
        "clients_repeats": str(calls["work"]["repeats"]),
        "clients_origin": origin("clients_h200", "clients_graph_h200"),
    }
