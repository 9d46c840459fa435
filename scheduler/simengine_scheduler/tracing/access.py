"""The access diagram of a kernel list: which stage reads, writes and updates which buffers, as the calls declare it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ..core.calls import KernelCall
from ..core.segments import Segments
from .timeline import Canvas

_LETTERS = {"reads": "r", "writes": "w", "updates": "u"}
_COLOURS = {"r": "tab:blue", "w": "tab:orange", "u": "tab:red"}
_MEANING = {"r": "reads", "w": "writes", "u": "updates"}


@dataclass(frozen=True)
class AccessTable:
    """Which stages touch which buffers.

    Attributes:
        buffers: the rows, in the order in which the list first touches them.
        stages: the columns, in the order of their calls.
        cells: for a (buffer, stage) pair a string of `r`, `w` and `u`. A pair that is absent does not touch.
        calls: how many calls of the list each stage has.
    """

    buffers: tuple[str, ...]
    stages: tuple[str, ...]
    cells: dict[tuple[str, str], str]
    calls: dict[str, int]

    @classmethod
    def of(cls, calls: Iterable[KernelCall], segments: Segments) -> AccessTable:
        """Return the table of a list, without shards and partitions. A call without a stage counts under its name."""
        found: dict[tuple[str, str], set[str]] = {}
        numbers: dict[str, int] = {}
        buffers: dict[str, None] = {}
        for call in calls:
            stage = call.tag.stage or call.name
            numbers[stage] = numbers.get(stage, 0) + 1
            for kind, letter in _LETTERS.items():
                for segment in getattr(call, kind):
                    buffer = segments.buffer(segment)
                    buffers[buffer] = None
                    found.setdefault((buffer, stage), set()).add(letter)
        cells = {place: "".join(sorted(letters, key="rwu".index)) for place, letters in found.items()}
        return cls(tuple(buffers), tuple(numbers), cells, numbers)

    def to_markdown(self) -> str:
        """Return the table as Markdown: r reads, w writes, u updates (reads and writes through one pointer)."""
        lines = [f"| buffer | {' | '.join(self.stages)} |", "|---" * (len(self.stages) + 1) + "|"]
        for buffer in self.buffers:
            row = (self.cells.get((buffer, stage), "") for stage in self.stages)
            lines.append(f"| {buffer} | {' | '.join(row)} |")
        return "\n".join(lines) + "\n"

    def plot(self, path: str | Path, title: str = "") -> None:
        """Write the table as a PNG: a mark for each access, and a line from a buffer's first writer to its last reader.

        Raises RuntimeError where matplotlib is not installed.
        """
        from matplotlib.patches import Patch, Rectangle

        size = 2.2 + 0.42 * len(self.stages), 1.9 + 0.19 * len(self.buffers)
        figure = Canvas().figure(max(4.0, size[0]), max(3.0, size[1]))
        axes = figure.subplots()
        for y, buffer in enumerate(self.buffers):
            touching = [x for x, stage in enumerate(self.stages) if (buffer, stage) in self.cells]
            axes.plot([touching[0], touching[-1]], [y, y], color="0.8", linewidth=0.8, zorder=1)
            for x in touching:
                letters = self.cells[buffer, self.stages[x]]
                for place, letter in enumerate(letters):
                    width = 0.7 / len(letters)
                    corner = (x - 0.35 + place * width, y - 0.36)
                    axes.add_patch(Rectangle(corner, width, 0.72, color=_COLOURS[letter], linewidth=0, zorder=2))
        names = [f"{stage} ({n})" if (n := self.calls[stage]) > 1 else stage for stage in self.stages]
        axes.set_xticks(range(len(self.stages)), names, rotation=45, ha="left", rotation_mode="anchor", fontsize=7)
        axes.xaxis.tick_top()
        axes.set_yticks(range(len(self.buffers)), self.buffers, fontsize=6.5)
        axes.set_xlim(-0.6, len(self.stages) - 0.4)
        axes.set_ylim(len(self.buffers) - 0.4, -0.6)
        axes.tick_params(length=0)
        axes.grid(axis="x", color="0.93", zorder=0)
        axes.set_axisbelow(True)
        for side in axes.spines.values():
            side.set_visible(False)
        patches = [Patch(color=_COLOURS[letter], label=_MEANING[letter]) for letter in "rwu"]
        figure.legend(handles=patches, loc="outside lower left", ncols=3, fontsize=7, frameon=False)
        if title:
            figure.suptitle(title, fontsize=9)
        figure.savefig(path, format="png", dpi=130)
