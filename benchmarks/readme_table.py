"""Write the README's results from the committed result files, or check that they are up to date.

    python benchmarks/readme_table.py            # rewrite the block in README.md
    python benchmarks/readme_table.py --check    # exit code 1 if the block differs

A result file is what `simengine bench stepping --json FILE` writes: an object with `hardware`, `versions`, `date`,
`command` and `rows`, each row with at least a model, worlds, backend, executor and steps_per_s. Files in
`benchmarks/results` that are something else are left alone.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
README = ROOT / "README.md"
BEGIN, END = "<!-- results -->", "<!-- end of results -->"
NONE_YET = "No results are committed yet."
COLUMNS = (
    "model",
    "worlds",
    "backend, executor",
    "steps/s",
    "calls a step",
    "peer",
    "peer's steps/s",
    "ratio",
    "error",
)
HEADER = {"hardware", "versions", "date", "command", "rows"}
ROW = {"model", "worlds", "backend", "executor", "steps_per_s"}


def stepping_results(folder: Path) -> list[dict[str, Any]]:
    """All stepping results of a folder, in the order of their file names."""
    found = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))]
    return [result for result in found if _is_stepping(result)]


def render(results: list[dict[str, Any]]) -> str:
    """The Markdown of all results: for each a line on where it comes from, and its table."""
    return "\n\n".join(_section(result) for result in results) or NONE_YET


def replace_block(text: str, block: str) -> str:
    """`text` with what stands between the two markers replaced by `block`.

    Raises:
        ValueError: the markers do not stand there once each, in order.
    """
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
        raise ValueError(f"{README.name} needs the lines {BEGIN} and {END} once each, in this order; put them back")
    head, rest = text.split(BEGIN)
    return f"{head}{BEGIN}\n{block}\n{END}{rest.split(END)[1]}"


def _is_stepping(result: Any) -> bool:
    return isinstance(result, dict) and set(result) >= HEADER and all(set(row) >= ROW for row in result["rows"])


def _section(result: dict[str, Any]) -> str:
    hardware, versions = result["hardware"], result["versions"]
    cores = f"{hardware['cores']} cores of " if "cores" in hardware else ""
    machine = hardware.get("gpu") or f"{cores}{hardware['cpu']}"
    shown = ", ".join(f"{name} {versions[name]}" for name in ("mujoco", "jax", "cupy-cuda13x") if name in versions)
    lines = [f"{machine}; {shown}; {result['date']}; `{result['command']}`", ""]
    lines += [_line(COLUMNS), _line("---" for _ in COLUMNS)]
    lines += [_line(_cells(row)) for row in result["rows"]]
    return "\n".join(lines)


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    peer, ratio, error = row.get("peer"), row.get("ratio"), row.get("qacc_error")
    return (
        row["model"],
        str(row["worlds"]),
        ", ".join(row[name] for name in ("backend", "executor", "dtype") if name in row),
        f"{row['steps_per_s']:,.0f}",
        f"{row['kernels_per_step']:g}" if "kernels_per_step" in row else "",
        peer or "",
        f"{row['peer_steps_per_s']:,.0f}" if peer else "",
        f"{ratio:.2f}" if ratio else "",
        f"{error:.0e}" if error is not None else "",
    )


def _line(cells: Any) -> str:
    return "| " + " | ".join(cells) + " |"


def main(arguments: list[str] | None = None) -> int:
    """Rewrite or check the block; the exit code."""
    parser = argparse.ArgumentParser(description="Write the README's results from benchmarks/results.")
    parser.add_argument("--check", action="store_true", help="change nothing; exit with 1 if the README is out of date")
    options = parser.parse_args(arguments)
    text = README.read_text(encoding="utf-8")
    wanted = replace_block(text, render(stepping_results(RESULTS)))
    if options.check:
        if text != wanted:
            print("README.md is out of date; run python benchmarks/readme_table.py", file=sys.stderr)
        return int(text != wanted)
    README.write_text(wanted, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
