"""The timeline picture of a trace."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .trace import Event


def plot_timeline(events: Sequence[Event], title: str, path: str | Path) -> None:
    """Write a PNG with one row for each stream and one colour for each stage (or call name, where there is none)."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise RuntimeError("plotting a trace needs matplotlib; install it or use Trace.to_chrome()") from error

    import matplotlib

    streams = sorted({e.stream for e in events})
    row = {stream: index for index, stream in enumerate(streams)}
    stages = list(dict.fromkeys(e.tag.stage or e.name for e in events))
    colours = matplotlib.colormaps["tab20"]
    figure = Figure(figsize=(12, 1.2 + 0.35 * len(streams) + 0.12 * len(stages)), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    for index, stage in enumerate(stages):
        mine = [e for e in events if (e.tag.stage or e.name) == stage]
        axes.barh(
            [row[e.stream] for e in mine],
            [(e.end - e.start) * 1e3 for e in mine],
            left=[e.start * 1e3 for e in mine],
            height=0.8,
            color=colours(index % 20),
            label=stage,
        )
    axes.set_yticks(range(len(streams)), [str(s) for s in streams])
    axes.invert_yaxis()
    axes.set_xlabel("time [ms]")
    axes.set_ylabel("stream")
    axes.set_title(title)
    figure.legend(loc="outside right upper", fontsize="small")
    figure.savefig(path, format="png", dpi=120)
