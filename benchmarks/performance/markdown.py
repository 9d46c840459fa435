"""Markdown tables, and how figures are written in them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

NONE = "–"  # noqa: RUF001
"""What stands where nothing was measured."""


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], words: int = 1) -> str:
    """A Markdown table; so many first columns hold words and are aligned left, the others right."""
    lines = [_line(columns), _line([*["---"] * words, *["---:"] * (len(columns) - words)])]
    for row in rows:
        if len(row) != len(columns):
            raise ValueError(f"a row of {len(row)} cells stands in a table of {len(columns)} columns: {row}")
        lines.append(_line(row))
    return "\n".join(lines)


def speed(steps_per_s: float) -> str:
    """Steps a second with three digits: 999, 12.3 k, 4.56 M."""
    for unit, name in ((1e6, " M"), (1e3, " k")):
        if steps_per_s >= 0.9995 * unit:
            return f"{three_digits(steps_per_s / unit)}{name}"
    return three_digits(steps_per_s) if steps_per_s < 100 else f"{steps_per_s:.0f}"


def three_digits(number: float) -> str:
    """A number of 0.01 or more with three digits, or all before the point: 0.37, 4.56, 12.3, 15,391."""
    return f"{number:,.{2 - (number >= 9.995) - (number >= 99.95)}f}"


def ratio(number: float) -> str:
    """How many times as fast, with two digits after the point below 10."""
    return f"{number:,.{2 - (number >= 9.995) - (number >= 99.95)}f}x"


def span(values: Sequence[float]) -> str:
    """Least and largest of several microseconds, or the one that there is."""
    least, most = f"{min(values):,.0f}", f"{max(values):,.0f}"
    return least if least == most else f"{least} to {most}"


def percent(share: float) -> str:
    """A share of one in percent."""
    return f"{100 * share:.0f} %"


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
