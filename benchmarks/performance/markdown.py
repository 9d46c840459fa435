"""Markdown tables, and the format of figures in them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

NONE = "–"  # noqa: RUF001
"""The text of a cell that was not measured."""


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], words: int = 1) -> str:
    """A Markdown table. The first `words` columns are aligned left, the others right."""
    lines = [_line(columns), _line([*["---"] * words, *["---:"] * (len(columns) - words)])]
    for row in rows:
        if len(row) != len(columns):
            raise ValueError(f"a row of {len(row)} cells stands in a table of {len(columns)} columns: {row}")
        lines.append(_line(row))
    return "\n".join(lines)


def speed(steps_per_s: float) -> str:
    """Steps per second with three digits: 999, 12.3 k, 4.56 M."""
    for unit, name in ((1e6, " M"), (1e3, " k")):
        if steps_per_s >= 0.9995 * unit:
            return f"{three_digits(steps_per_s / unit)}{name}"
    return three_digits(steps_per_s) if steps_per_s < 100 else f"{steps_per_s:.0f}"


def three_digits(number: float) -> str:
    """A number of at least 0.01, with three digits or with all digits before the point: 0.37, 4.56, 12.3, 15,391."""
    return f"{number:,.{2 - (number >= 9.995) - (number >= 99.95)}f}"


def ratio(number: float) -> str:
    """A ratio, with two digits after the point if it is less than 10."""
    return f"{number:,.{2 - (number >= 9.995) - (number >= 99.95)}f}x"


def span(values: Sequence[float]) -> str:
    """The smallest and the largest of several values [us], or the only one."""
    least, most = f"{min(values):,.0f}", f"{max(values):,.0f}"
    return least if least == most else f"{least} to {most}"


def percent(share: float) -> str:
    """A share between 0 and 1, in percent."""
    return f"{100 * share:.0f} %"


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
