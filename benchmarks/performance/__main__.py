"""Writes `docs/performance.md` and its chart from the committed results, or checks that they are up to date.

python -m benchmarks.performance            # write both
python -m benchmarks.performance --check    # exit code 1 if one of them is out of date
"""

from __future__ import annotations

import argparse
import sys

from . import chart
from .page import PAGE, page


def stale() -> list[str]:
    """Names of the files that are out of date. The page is compared by its text, the chart by its fingerprint."""
    found = []
    if not PAGE.is_file() or PAGE.read_text(encoding="utf-8") != page():
        found.append(PAGE.name)
    shown = chart.CHART.read_text(encoding="utf-8") if chart.CHART.is_file() else ""
    if f"figures {chart.fingerprint(chart.points())}" not in shown:
        found.append(chart.CHART.name)
    return found


def main(arguments: list[str] | None = None) -> int:
    """Write or check the files. Returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change nothing; exit with 1 if anything is out of date")
    if parser.parse_args(arguments).check:
        if found := stale():
            print(f"{' and '.join(found)} out of date; run python -m benchmarks.performance", file=sys.stderr)
            return 1
        return 0
    PAGE.write_text(page(), encoding="utf-8")
    chart.CHART.write_text(chart.svg(chart.points()), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
