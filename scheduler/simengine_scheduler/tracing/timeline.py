"""The timeline picture of a trace: what ran when, what waited for what, and when nothing ran."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..core.calls import KernelCall
from ..core.segments import Segments
from .events import By, Event, concurrency, idle_share, span
from .holds import Hazard, Hold, holds, idle_spans
from .perfetto import label, tracks

_MOST_ARROWS = 500
_LETTER = 0.006  # share of the picture's width that a letter of a name takes
_TIP = 5  # marker: a triangle whose tip, to the right, is at the point


def plot_timeline(
    executor: str,
    order: Sequence[KernelCall],
    events: Sequence[Event],
    path: str | Path,
    segments: Segments | None,
    by: By,
) -> None:
    """Write a PNG with a row for each stream or kernel.

    Args:
        executor: the name of what ran.
        order: the calls in program order.
        events: what ran, with times.
        path: the file.
        segments: the table of the calls' segments; with it the picture shows hazards.
        by: a row for each "stream", or for each "kernel".
    """
    figures = Canvas()
    origin, end = min(e.start for e in events), max(e.end for e in events)
    unit, scale = ("us", 1e6) if end - origin < 0.01 else ("ms", 1e3)
    row = {name: place for place, name in enumerate(tracks(events, by))}
    boxes = {e.seq: _Box(scale * (e.start - origin), scale * (e.end - origin), row[label(e, by)]) for e in events}
    kinds = _kinds(events, by)
    figure = figures.figure(13, 1.5 + max(0.36 * len(row), 0.17 * (len(kinds) + 6)))
    axes = figure.subplots()
    handles = _draw_calls(axes, kinds, boxes, unit)
    handles.append(_draw_idle(axes, [(scale * (a - origin), scale * (b - origin)) for a, b in idle_spans(events)]))
    if segments is not None:
        found, hazards = holds(order, events, segments)
        handles += _draw_hazards(axes, hazards, boxes, by)
        handles += _draw_gaps(axes, found, events, boxes) if by == "stream" else []
    if by == "stream":
        _write_names(axes, events, boxes, scale * (end - origin))
    axes.set_yticks(range(len(row)), [str(name) for name in row], fontsize="small")
    axes.set_ylim(len(row) - 0.5, -0.5)
    axes.set_xlim(0, scale * (end - origin) * 1.005 or 1)
    axes.set_xlabel(f"time [{unit}]")
    axes.set_ylabel(by)
    busy = f"{concurrency(events):.2f} at a time, none for {idle_share(events):.0%} of the time"
    took = f"{_brief(scale * span(events))} {unit}"
    axes.set_title(f"{executor}: {len(events)} calls in {took}, {busy}", fontsize="medium")
    title = "kernel: calls, sum" if by == "stream" else "stream: calls, sum"
    figure.legend(handles=handles, loc="outside right upper", fontsize="x-small", title=title, title_fontsize="x-small")
    figure.savefig(path, format="png", dpi=130)


class _Box(NamedTuple):
    """Where a call is in the picture: start and end in the unit of the axis, and the row."""

    start: float
    end: float
    row: int


class Canvas:
    """Figures that need no display. Raises RuntimeError where matplotlib is not installed."""

    def __init__(self) -> None:
        try:
            from matplotlib.backends.backend_agg import FigureCanvasAgg
            from matplotlib.figure import Figure
        except ImportError as error:
            raise RuntimeError("pictures need matplotlib; install it or write JSON with Trace.to_chrome()") from error
        self._make: Any = Figure
        self._draw: Any = FigureCanvasAgg

    def figure(self, width: float, height: float) -> Any:
        """Return a figure of a size [inches]."""
        figure = self._make(figsize=(width, height), layout="constrained")
        self._draw(figure)
        return figure


def _kinds(events: Sequence[Event], by: By) -> dict[str, list[Event]]:
    """Group events by colour: by stage where rows are streams, by stream where rows are kernels."""
    found = defaultdict(list)
    for event in events:
        found[(event.tag.stage or event.name) if by == "stream" else str(event.stream)].append(event)
    return dict(sorted(found.items(), key=lambda item: -_busy(item[1]) if by == "stream" else int(item[0])))


def _busy(events: Sequence[Event]) -> float:
    return sum(e.end - e.start for e in events)


def _brief(number: float) -> str:
    """Return a number with three digits, or with all digits before the point if there are more."""
    return f"{number:.0f}" if number >= 100 else f"{number:.3g}"


def _draw_calls(axes: Any, kinds: dict[str, list[Event]], boxes: dict[int, _Box], unit: str) -> list[Any]:
    """Draw a bar for each call. Returns entries of the legend."""
    import matplotlib
    from matplotlib.patches import Patch

    handles = []
    for index, (kind, mine) in enumerate(kinds.items()):
        found = [boxes[e.seq] for e in mine]
        widths = [box.end - box.start for box in found]
        colour = matplotlib.colormaps["tab20"](index % 20)
        left = [box.start for box in found]
        axes.barh([box.row for box in found], widths, left=left, height=0.72, color=colour, zorder=2)
        handles.append(Patch(color=colour, label=f"{kind}: {len(mine)}, {_brief(sum(widths))} {unit}"))
    return handles


def _draw_idle(axes: Any, spans: Sequence[tuple[float, float]]) -> Any:
    """Shade the times in which nothing runs."""
    from matplotlib.patches import Patch

    for start, stop in spans:
        axes.axvspan(start, stop, color="0.88", zorder=0, linewidth=0)
    return Patch(color="0.88", label="no kernel runs")


def _draw_hazards(axes: Any, hazards: Sequence[Hazard], boxes: dict[int, _Box], by: By) -> list[Any]:
    """Draw hazards between rows: bold arrows where the later call waited for the earlier one, else thin lines."""
    from matplotlib.lines import Line2D

    between = [h for h in hazards if boxes[h.earlier].row != boxes[h.later].row]
    for held, colour, width in ((False, "0.5", 0.4), (True, "tab:red", 1.1)):
        chosen = [h for h in between if h.held == held and (held or by == "stream")][:_MOST_ARROWS]
        lines = [[boxes[h.earlier][1:], (boxes[h.later].start, boxes[h.later].row)] for h in chosen]
        _draw_lines(axes, lines, colour, width)
        if held and lines:
            axes.scatter(*zip(*(line[1] for line in lines), strict=True), marker=_TIP, s=26, color=colour, zorder=4)
    handles = [Line2D([], [], color="tab:red", linewidth=1.2, label="hazard that held a call")]
    others = Line2D([], [], color="0.5", linewidth=0.6, label="other hazards between rows")
    return [*handles, others] if by == "stream" else handles


def _draw_gaps(axes: Any, found: Sequence[Hold], events: Sequence[Event], boxes: dict[int, _Box]) -> list[Any]:
    """Draw why streams were idle: red until the last hazard was over, then blue until the call started."""
    from matplotlib.lines import Line2D

    stream = {event.seq: event.stream for event in events}
    free: dict[int, float] = {}  # stream -> end of its latest call
    waiting, starting = [], []
    for hold in found:
        box = boxes[hold.seq]
        since = free.get(stream[hold.seq], 0.0)
        over = max(since, boxes[hold.by].end) if hold.kind == "hazard" else since
        waiting.append([(since, box.row), (over, box.row)])
        starting.append([(over, box.row), (max(over, box.start), box.row)])
        free[stream[hold.seq]] = box.end
    handles = []
    for lines, colour, text in (
        (waiting, "tab:red", "stream waits for a hazard"),
        (starting, "tab:blue", "stream waits for launch or host"),
    ):
        _draw_lines(axes, [line for line in lines if line[1][0] > line[0][0]], colour, 3.0)
        handles.append(Line2D([], [], color=colour, linewidth=3.0, alpha=0.5, label=text))
    return handles


def _draw_lines(axes: Any, lines: Sequence[Sequence[tuple[float, ...]]], colour: str, width: float) -> None:
    from matplotlib.collections import LineCollection

    axes.add_collection(
        LineCollection(lines, colors=colour, linewidths=width, alpha=0.5 if width > 2 else 1.0, zorder=3)
    )


def _write_names(axes: Any, events: Sequence[Event], boxes: dict[int, _Box], span: float) -> None:
    """Write names into the bars that are wide enough."""
    for event in events:
        box = boxes[event.seq]
        if box.end - box.start > _LETTER * len(event.name) * span:
            middle = (box.start + box.end) / 2
            axes.text(middle, box.row, event.name, ha="center", va="center", fontsize=6, zorder=5)
