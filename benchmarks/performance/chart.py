"""The chart of speeds relative to peers: a row for each model, a dot for each number of worlds, a line at 1."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from . import heaps
from .results import RESULTS, load

CHART = RESULTS.parents[1] / "docs" / "images" / "speed.svg"

_INK, _FAINT, _PAPER, _LOST = "#1f2328", "#8c959f", "#ffffff", "#fbe9e7"
_WORLDS = (1, 64, 256, 512, 1024, 4096, 8192, 32768)
_MODELS = {"humanoid/humanoid": "humanoid (MuJoCo Warp's own)"}
_FONT_SIZE = 9.0


class Point(NamedTuple):
    """One case: the speed divided by the peer's, or None if the peer has no result."""

    panel: str
    row: str
    worlds: int
    ratio: float | None


def points() -> list[Point]:
    """All cases, in the order of the chart's rows."""
    found = []
    gpu = "One NVIDIA H200, over MuJoCo Warp"
    for row in load("models_h200")["rows"]:
        if "error" not in row:
            name = _MODELS.get(row["model"], row["model"])
            found.append(Point(gpu, name, row["worlds"], row.get("ratio")))
    for row in load("mixed_h200")["rows"]:
        if row["executor"] == "graph-cached" and row["emission"] == "whole":
            found.append(Point(gpu, "these six in one batch", row["worlds_each"], row["over_peer"]))
    results, peer = [load("piles_1_h200"), load("piles_256_h200")], load("peers/piles_mujoco_warp_h200")
    of_heaps = heaps.ratios(results, peer)
    for (engine, (bodies, worlds)), ratio in sorted(of_heaps.items(), key=lambda item: (item[0][0], *item[0][1])):
        if engine == "MuJoCo Warp":
            found.append(Point(gpu, f"heap of {bodies:,} bodies", worlds, ratio))
    for (engine, (bodies, worlds)), ratio in of_heaps.items():
        if engine == "MuJoCo C":
            found.append(
                Point("One H200, over MuJoCo C on one CPU thread", f"heap of {bodies:,} bodies", worlds, ratio)
            )
    for row in load("cpu_xeon_2_cores")["rows"]:
        found.append(Point("Two CPU cores, over mujoco.rollout on them", row["model"], row["worlds"], row["ratio"]))
    return found


def fingerprint(of: Sequence[Point]) -> str:
    """A hash of the figures, which the file of the chart contains so that an outdated chart is noticed."""
    return hashlib.sha256(json.dumps(of).encode()).hexdigest()[:16]


def svg(of: Sequence[Point]) -> str:
    """The chart as SVG. The same points give the same text with the same version of matplotlib."""
    import matplotlib

    with matplotlib.rc_context({"svg.hashsalt": "speed", "svg.fonttype": "path"}):
        out = io.StringIO()
        metadata = {"Date": None, "Creator": None, "Description": f"figures {fingerprint(of)}"}
        figure(of).savefig(out, format="svg", metadata=metadata)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def figure(of: Sequence[Point]) -> Any:
    """The chart as a matplotlib figure: a panel for each peer, with the same logarithmic axis of ratios."""
    from matplotlib.figure import Figure

    panels = list(dict.fromkeys(point.panel for point in of))
    rows = {panel: list(dict.fromkeys(point.row for point in of if point.panel == panel)) for panel in panels}
    heights = [len(rows[panel]) for panel in panels]
    chart = Figure(
        figsize=(8.4, 0.26 * sum(heights) + 0.35 * len(panels) + 1.1), facecolor=_PAPER, layout="constrained"
    )
    every = chart.subplots(len(panels), sharex=True, squeeze=False, height_ratios=heights)[:, 0]
    limits = _limits([point.ratio for point in of if point.ratio])
    for panel, axes in zip(panels, every, strict=True):
        axes.set_title(panel, loc="left", fontsize=_FONT_SIZE + 1, weight="bold", color=_INK)
        axes.set_yticks(range(len(rows[panel])), rows[panel])
        axes.set_ylim(len(rows[panel]) - 0.4, -0.6)
        _frame(axes, *limits)
        _dots(axes, [point for point in of if point.panel == panel], rows[panel])
    every[-1].set_xlabel(_below(of), color=_INK, fontsize=_FONT_SIZE)
    _legend(chart, of)
    return chart


def _limits(ratios: Sequence[float]) -> tuple[float, float]:
    """Ends of the axis, somewhat beyond the smallest and the largest ratio."""
    return min(ratios) / 1.5, max(ratios) * 1.5


def _frame(axes: Any, low: float, high: float) -> None:
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    axes.axvspan(low, 1, color=_LOST, zorder=-1)
    axes.axvline(1, color=_INK, linewidth=1.2)
    ticks = [tick for tick in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000) if low <= tick <= high]
    axes.set_xticks(ticks, [f"{tick:,g}x" for tick in ticks])
    axes.set_xticks([], minor=True)
    axes.set_facecolor(_PAPER)
    axes.tick_params(length=0, colors=_INK, labelsize=_FONT_SIZE)
    axes.grid(color=_FAINT, linewidth=0.4, alpha=0.5)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _dots(axes: Any, of: Sequence[Point], rows: Sequence[str]) -> None:
    for point in of:
        if point.ratio is not None:
            style = {"s": 42, "color": [_color(point.worlds)], "edgecolor": _INK, "linewidth": 0.5, "zorder": 3}
            axes.scatter([point.ratio], [rows.index(point.row)], **style)


def _color(worlds: int) -> Any:
    import matplotlib

    return matplotlib.colormaps["viridis_r"](0.1 + 0.9 * _WORLDS.index(worlds) / (len(_WORLDS) - 1))


def _below(of: Sequence[Point]) -> str:
    """The text below the axis: how to read it, and the cases without a dot."""
    lines = ["times the peer's speed; in the shaded part, left of 1x, the peer is faster"]
    missing = (f"{point.row} with {point.worlds:,} worlds" for point in of if point.ratio is None)
    lines += [f"the peer has no result for {case}" for case in missing]
    return "\n".join(lines)


def _legend(chart: Any, of: Sequence[Point]) -> None:
    from matplotlib.lines import Line2D

    worlds = sorted({point.worlds for point in of})
    style: dict[str, Any] = {"linestyle": "", "marker": "o", "markeredgecolor": _INK, "markeredgewidth": 0.5}
    dots = [Line2D([], [], markerfacecolor=_color(number), **style) for number in worlds]
    names = [f"{number:,}" for number in worlds]
    chart.legend(
        *(dots, names),
        loc="outside lower center",
        ncols=len(worlds),
        title="worlds",
        fontsize=8,
        title_fontsize=8,
        frameon=False,
        handletextpad=0.1,
        labelcolor=_INK,
    )
