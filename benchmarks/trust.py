"""Write the figures of `docs/trust.md` from result files: `python -m benchmarks.trust`."""

from __future__ import annotations

import json
import re
import sys
import textwrap
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGE, RESULTS = ROOT / "docs" / "trust.md", ROOT / "benchmarks" / "results"
_SHOWN = ("qacc", "efc_force", "contact_dist", "sensordata", "qvel")


def fuzz_figures(*results: dict[str, Any]) -> str:
    """What fuzzing has compared on each backend, and the largest errors of some fields."""
    columns = list(dict.fromkeys((result["backend"], dtype) for result in results for dtype in result["dtypes"]))
    rows = [
        " | ".join((f"| `{name}`", *(_error(results, name, *column) for column in columns))) + " |" for name in _SHOWN
    ]
    head = " | ".join(("| largest error of", *(f"{backend}, {dtype}" for backend, dtype in columns))) + " |"
    table = "\n".join((head, "|" + "---|" * (1 + len(columns)), *rows))
    commands = "; ".join(f"`{result['command']}`, {result['date']}" for result in results)
    together: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for result in results:
        together.setdefault((result["backend"], _where(result), result["date"]), []).append(result)
    said = (_fuzzed(*place, runs) for place, runs in together.items())
    return "\n\n".join((*said, table, textwrap.fill(commands, 120, break_on_hyphens=False)))


def _fuzzed(backend: str, where: str, date: str, runs: Sequence[dict[str, Any]]) -> str:
    """What became of the models of all runs of a backend on a machine and day."""
    models = sum((Counter(run["models"]) for run in runs), Counter[str]())
    drawn, states, left_out = (sum(run[name] for run in runs) for name in ("drawn", "states", "left_out"))
    findings = sum(len(run["findings"]) + run["repeated"] for run in runs)
    explained = sum(sum(run["explained"].values()) for run in runs)
    early, minutes = sum(not run.get("complete", True) for run in runs), sum(run["seconds"] for run in runs) / 60
    text = (
        f"The {backend} backend, on {where}, {date}: {drawn:,} models in {minutes:.0f} minutes"
        f"{f' of {len(runs)} runs' if len(runs) > 1 else ''}{_processes(runs)}, of which "
        f"{models['agrees'] + models['differs']:,} were "
        f"compared in {states:,} states and steps. MuJoCo refused {models['invalid']:,}, the engine "
        f"{models['refused']:,}, and {models['undecided']:,} had nothing to compare or were too large. {left_out:,} "
        f"states and steps were left out. Rounding, ties and early ends explain {explained:,} values beyond their "
        f"tolerance. {findings} {'model was' if findings == 1 else 'models were'} unexplained."
        f"{_early(early, len(runs))}"
    )
    return textwrap.fill(text, 120, break_on_hyphens=False)


def _processes(runs: Sequence[dict[str, Any]]) -> str:
    """By how many processes, if it is the same number of several in all runs."""
    numbers = {found[1] for run in runs if (found := re.search(r"--jobs (\d+)", run["command"]))}
    return f" by {numbers.pop()} processes" if len(numbers) == 1 and numbers != {"1"} else ""


def _early(ended: int, runs: int) -> str:
    if not ended:
        return ""
    return " The run was ended early." if runs == 1 else f" Of the runs, {ended} ended early."


def fault_figures(*results: dict[str, Any]) -> str:
    """What became of each kind of fault."""
    return "\n\n".join(map(_faults, results))


def _faults(result: dict[str, Any]) -> str:
    rows = [
        f"| {row['fault']} | {row['to']} | {row['trials']} | {row['found']} | {row['recovered']} | {row['harmless']} | "
        f"{len(row['wrong'])} |"
        for row in result["rows"]
    ]
    head = ("| fault | to | trials | found | recovered | harmless | wrong |", "|---|---|---|---|---|---|---|")
    return "\n".join((*head, *rows)) + f"\n\n`{result['command']}`, {result['date']}, {_where(result)}"


def soak_figures(*results: dict[str, Any]) -> str:
    """By how much each thing grew on each backend."""
    return "\n\n".join(map(_soaked, results))


def _soaked(result: dict[str, Any]) -> str:
    rows = [
        f"| {row['name'].replace('_mib', ' [MiB]').replace('_', ' ')} | {row['first']:.1f} | {row['last']:.1f} | "
        f"{row['growth']:+.2f} ± {row['error']:.2f} | {'yes' if row['flat'] else 'no'} |"
        for row in result["rows"]
    ]
    head = (f"| {result['backend']} | first | last | growth in the second half | flat |", "|---|---|---|---|---|")
    end = f"{result['rounds']:,} rounds, `{result['command']}`, {result['date']}, {_where(result)}"
    return "\n".join((*head, *rows)) + f"\n\n{end}"


def _there(*patterns: str) -> tuple[str, ...]:
    """Names of the result files that patterns match."""
    return tuple(path.name for pattern in patterns for path in sorted(RESULTS.glob(pattern)))


PARTS: dict[str, tuple[tuple[str, ...], Callable[..., str]]] = {
    "fuzz": (_there("fuzz_host*.json", "fuzz_cuda*.json", "fuzz_jax*.json"), fuzz_figures),
    "faults": (_there("faults_host.json", "faults_cuda.json"), fault_figures),
    "soak": (_there("soak_host.json", "soak_cuda.json"), soak_figures),
}
"""The parts of the page by their marks, with their files."""


def written(page: str) -> str:
    """The page with the figures of the result files in place of those between its marks."""
    for mark, (names, figures) in PARTS.items():
        text = figures(*(json.loads((RESULTS / name).read_text(encoding="utf-8")) for name in names))
        block = f"<!-- {mark} -->\n{text}\n<!-- end -->"
        found = re.search(rf"<!-- {mark} -->\n.*?<!-- end -->", page, flags=re.DOTALL)
        if found is None:
            raise ValueError(f"{PAGE} has no part <!-- {mark} -->; add it with <!-- end --> after it")
        page = page.replace(found[0], block)
    return page


def main() -> int:
    """Write the page."""
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


def _where(result: dict[str, Any]) -> str:
    if result.get("backend") == "cuda":
        return f"one {result['hardware']['gpu']} and {result['hardware']['cores']} cores"
    return f"{result['hardware']['cpu']}, {result['hardware']['cores']} cores"


def _error(results: Sequence[dict[str, Any]], name: str, backend: str, dtype: str) -> str:
    """The largest error of a field in all runs on a backend."""
    worst = [result["worst"].get(f"{name} in {dtype}") for result in results if result["backend"] == backend]
    errors = [error for error in worst if error is not None]
    return f"{max(errors):.0e}" if errors else "not compared"


if __name__ == "__main__":
    sys.exit(main())
