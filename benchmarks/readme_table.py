"""Write the README's tables of results from the committed result files, or check that they are up to date.

    python benchmarks/readme_table.py            # rewrite the blocks in README.md
    python benchmarks/readme_table.py --check    # exit code 1 if a block differs

The first block is of stepping results, as `simengine bench stepping --json FILE` and `benchmarks.stepping` write them:
an object with `hardware`, `versions`, `date`, `command` and `rows`, each row with at least a model, worlds, backend,
executor, and steps_per_s or an error. Other files in `benchmarks/results` are left alone. The second is of models in
one batch, from the file that `benchmarks.mixed` wrote, the third of executors on kernel lists, from those of `simengine
bench scheduler`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
README = ROOT / "README.md"
NONE_YET = "No results are committed yet."
HEADER = {"hardware", "versions", "date", "command", "rows"}
ROW = {"model", "worlds", "backend", "executor"}
SYSTEMS = {
    "serial": "one stream",
    "streams:completion=polling": "ACS-SW",
    "streams": "ACS-SW, chained by events",
    "streams:stream_policy=kesco": "KeSCo",
    "streams:stream_policy=opara": "Opara's plan on streams",
    "pipeline": "SET",
    "graph": "CUDA graph built anew",
    "graph-cached": "CUDA graph kept",
    "graph-cached:stream_policy=opara": "Opara",
    "device": "ACS-HW, cuSync's tiles",
    "device:tiled=false": "ACS-HW, whole calls",
    "auto": "the fastest of three, tried",
}
"""Executors of the second block, and what they are of the published systems."""

LISTS = ("ant", "half_cheetah", "walker2d", "grasp", "humanoid", "mixed")
WHOLE = "whole steps"
KEPT = "graph-cached", "ahead"


def stepping_results(folder: Path) -> list[dict[str, Any]]:
    """All stepping results of a folder, those of GPUs first, in the order of their file names."""
    found = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))]
    return sorted(filter(_is_stepping, found), key=lambda result: "gpu" not in result["hardware"])


def render(results: list[dict[str, Any]]) -> str:
    """The Markdown of all results: for each a line on where it comes from, and its table."""
    return "\n\n".join(_section(result) for result in results) or NONE_YET


def replace_block(text: str, name: str, block: str) -> str:
    """`text` with what stands between the markers of a block replaced by `block`.

    Raises:
        ValueError: the markers do not stand there once each, in order.
    """
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    if text.count(begin) != 1 or text.count(end) != 1 or text.index(begin) > text.index(end):
        raise ValueError(f"{README.name} needs the lines {begin} and {end} once each, in this order; put them back")
    head, rest = text.split(begin)
    return f"{head}{begin}\n{block}\n{end}{rest.split(end)[1]}"


def _is_stepping(result: Any) -> bool:
    if not (isinstance(result, dict) and set(result) >= HEADER):
        return False
    return all(set(row) >= ROW and {"steps_per_s", "error"} & set(row) for row in result["rows"])


def _section(result: dict[str, Any]) -> str:
    """A line on where a result comes from, and its table: a line for each model, a column for each number of worlds."""
    hardware, versions = result["hardware"], result["versions"]
    cores = f"{hardware['cores']} cores of " if "cores" in hardware else ""
    machine = hardware.get("gpu") or f"{cores}{hardware['cpu']}"
    shown = ", ".join(f"{name} {versions[name]}" for name in ("mujoco", "jax", "cupy-cuda13x") if name in versions)
    sizes = sorted({row["worlds"] for row in result["rows"]})
    columns = ("model", "backend, executor", *(f"{size} worlds" for size in sizes), "(ratio to)", "error")
    lines = [f"{machine}; {shown}; {result['date']}; `{result['command']}`", ""]
    lines += [_line(columns), _line("---" for _ in columns)]
    cases: dict[tuple[str, str], dict[int, dict[str, Any]]] = {}
    for row in result["rows"]:
        where = ", ".join(row[name] for name in ("backend", "executor", "dtype") if name in row)
        cases.setdefault((row["model"], where), {})[row["worlds"]] = row
    for (model, where), rows in cases.items():
        errors = [row["qacc_error"] for row in rows.values() if row.get("qacc_error") is not None]
        peers = dict.fromkeys(row["peer"] for row in rows.values() if row.get("peer"))
        cells = (_speed(rows.get(size)) for size in sizes)
        lines.append(_line((model, where, *cells, "; ".join(peers), f"{max(errors):.0e}" if errors else "")))
    return "\n".join(lines)


def _speed(row: dict[str, Any] | None) -> str:
    """Steps a second of a row, and how many times the peer's they are."""
    if row is None or "error" in row:
        return "" if row is None else row["error"].partition(":")[0]
    speed = row["steps_per_s"]
    shown = (
        f"{speed:.0f}" if speed < 1e3 else f"{_digits(speed / 1e3)} k" if speed < 1e6 else f"{_digits(speed / 1e6)} M"
    )
    return f"{shown} ({row['ratio']:.2f})" if row.get("ratio") else shown


def _digits(number: float) -> str:
    """A number below 1000 with three digits."""
    return f"{number:.{2 - (number >= 9.995) - (number >= 99.95)}f}"


def executors(results: Sequence[dict[str, Any]]) -> str:
    """The Markdown of executors on lists ahead of their counts, in microseconds a step, and of whole steps."""
    took = {(row["workload"], row["executor"]): row["us_per_step"] for result in results for row in result["rows"]}
    kept = (row for result in results for row in result["rows"] if row["executor"] == "graph-cached")
    calls = {row["workload"]: row.get("kernels_per_step") for row in kept}
    of_lists = [f"{name}:emission=ahead" for name in LISTS]
    columns = ("executor", "system", *LISTS, "wired network")
    lines = [_line(columns), _line("---" for _ in columns)]
    for executor, system in SYSTEMS.items():
        times = [took.get((workload, executor)) for workload in (*of_lists, "wired")]
        lines.append(_line((f"`{executor}`", system, *map(_us, times))))
    whole = [took.get((f"{name}:emission=whole", "graph-cached")) for name in LISTS]
    # a model without whole steps has its list there too
    same = [calls.get(f"{name}:emission=whole") == calls.get(f"{name}:emission=ahead", -1) for name in LISTS]
    cells = (_us(None if listed else time) for time, listed in zip(whole, same, strict=True))
    lines.append(_line((WHOLE, "a kernel for each model", *cells, "")))
    return "\n".join(lines)


def mixed(result: dict[str, Any]) -> str:
    """The Markdown of models in one batch: microseconds a step by executor, whole, alone, and by the peer."""
    of_lists = ("serial", "streams", "graph", "pipeline", "device", "graph-cached")
    names = [f"`{name}`" for name in of_lists]
    columns = (
        "worlds of each",
        *names,
        WHOLE,
        "alone, one after another",
        "MuJoCo Warp, one after another",
        "(ratio to)",
    )
    lines = [_line(columns), _line("---" for _ in columns)]
    for size in sorted({row["worlds_each"] for row in result["rows"] if "error" not in row}):
        rows = [row for row in result["rows"] if row["worlds_each"] == size and "error" not in row]
        took = {row["executor"]: row["us_per_step"] for row in rows if row["emission"] != "whole"}
        lists = {row["kernels_per_step"] for row in rows if (row["executor"], row["emission"]) == KEPT}
        whole = [row for row in rows if row["emission"] == "whole" and row["kernels_per_step"] not in lists]
        if whole:  # with many worlds no model has whole steps, and the list is the same
            took[WHOLE] = whole[0]["us_per_step"]
        alone = min(row["one_after_another_us"] for row in rows)
        peer = rows[0]["peer_us"]
        times = [_us(took.get(name)) for name in (*of_lists, WHOLE)]
        lines.append(_line((str(size), *times, _us(alone), _us(peer), f"{peer / min(took.values()):.1f}")))
    return "\n".join(lines)


def _us(time: float | None) -> str:
    return "" if time is None else f"{time:.0f}"


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def wanted(text: str, folder: Path) -> str:
    """The README's text with its blocks as the results have them."""
    lists = [json.loads((folder / f"scheduler{kind}_h200.json").read_text(encoding="utf-8")) for kind in ("", "_large")]
    text = replace_block(text, "results", render(stepping_results(folder)))
    text = replace_block(text, "mixed", mixed(json.loads((folder / "mixed_h200.json").read_text(encoding="utf-8"))))
    return replace_block(text, "executors", executors(lists))


def main(arguments: list[str] | None = None) -> int:
    """Rewrite or check the blocks; the exit code."""
    parser = argparse.ArgumentParser(description="Write the README's results from benchmarks/results.")
    parser.add_argument("--check", action="store_true", help="change nothing; exit with 1 if the README is out of date")
    options = parser.parse_args(arguments)
    text = README.read_text(encoding="utf-8")
    new = wanted(text, RESULTS)
    if options.check:
        if text != new:
            print("README.md is out of date; run python benchmarks/readme_table.py", file=sys.stderr)
        return int(text != new)
    README.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
