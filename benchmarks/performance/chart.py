"""The chart of speeds relative to peers: a row for each set of models, a dot for each case, a line at 1."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from . import heaps
from .results import RESULTS, load
from .robots import ROLLOUT, WARP, Beside, Peer

CHART = RESULTS.parents[1] / "docs" / "images" / "speed.svg"

_INK, _FAINT, _PAPER, _LOST = "#1f2328", "#8c959f", "#ffffff", "#fbe9e7"
_WORLDS = (1, 64, 256, 512, 1024, 4096, 8192, 32768)
_FONT_SIZE = 9.0
_SPREAD = 0.5  # of a row's height, over which the numbers of worlds of a set are spread

_GPU, _CPU = "One NVIDIA H200, over MuJoCo Warp", "Two CPU cores, over mujoco.rollout on them"
SETS = (
    (_GPU, "models of Gymnasium", "peers/gymnasium_mujoco_warp_h200", WARP),
    (_GPU, "robots of public packages", "peers/robots_mujoco_warp_h200", WARP),
    (_GPU, "kinds of models", "peers/kinds_mujoco_warp_h200", WARP),
    (_CPU, "models and robots", "peers/mujoco_rollout_2_cores", ROLLOUT),
    (_CPU, "kinds of models", "peers/kinds_mujoco_rollout_2_cores", ROLLOUT),
)
"""Sets of models: the panel, what they are, the result file without its suffix, and the peer."""


class Point(NamedTuple):
    """One case: the speed divided by the peer's, or None if the peer has no result."""

    panel: str
    row: str
    worlds: int
    ratio: float | None


def points() -> list[Point]:
    """All cases, in the order of the chart's rows."""
    found: list[Point] = []
    for panel, what, name, peer in SETS:
        found += _of_set(panel, what, name, peer)
    for case in load("mixed_h200")["rows"]:
        if case["executor"] == "graph-cached" and case["emission"] == "whole":
            found.append(Point(_GPU, "these six in one batch", case["worlds_each"], case["over_peer"]))
    results, peer_result = [load("piles_1_h200"), load("piles_256_h200")], load("peers/piles_mujoco_warp_h200")
    of_heaps = heaps.ratios(results, peer_result)
    for (engine, (bodies, worlds)), ratio in sorted(of_heaps.items(), key=lambda item: (item[0][0], *item[0][1])):
        panel = _GPU if engine == "MuJoCo Warp" else "One H200, over MuJoCo C on one CPU thread"
        found.append(Point(panel, f"heap of {bodies:,} bodies", worlds, ratio))
    return sorted(found, key=lambda point: _panels(found).index(point.panel))


def _of_set(panel: str, what: str, name: str, peer: Peer) -> list[Point]:
    """The cases of a set in which both engines have a result."""
    ratios = Beside(load(name), peer).ratios()
    row = f"{what} ({len({model for model, _ in ratios})})"
    return [Point(panel, row, worlds, ratio) for (_, worlds), ratio in ratios.items()]


def _panels(of: Sequence[Point]) -> list[str]:
    return list(dict.fromkeys(point.panel for point in of))


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

    panels = _panels(of)
    rows = {panel: list(dict.fromkeys(point.row for point in of if point.panel == panel)) for panel in panels}
    heights = [len(rows[panel]) for panel in panels]
    chart = Figure(
        figsize=(8.4, 0.42 * sum(heights) + 0.35 * len(panels) + 1.1), facecolor=_PAPER, layout="constrained"
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
    shown = [point for point in of if point.ratio is not None]
    for row in rows:
        of_row = [point for point in shown if point.row == row]
        sizes = sorted({point.worlds for point in of_row})
        apart = _SPREAD / len(sizes) if len(of_row) > len(sizes) else 0.0  # a set has several dots of each size
        for point in of_row:
            place = rows.index(row) + apart * (sizes.index(point.worlds) - (len(sizes) - 1) / 2)
            style = {"s": 30, "color": [_color(point.worlds)], "edgecolor": _INK, "linewidth": 0.4, "zorder": 3}
            axes.scatter([point.ratio], [place], **style)


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
