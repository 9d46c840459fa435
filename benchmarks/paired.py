"""Compares the speeds of two checkouts: `python -m benchmarks.paired --before PATH --after PATH --backend host`.

Processes of both checkouts (`benchmarks/timed_checkout.py`) take turns, whose order is reversed in every other round,
so that a change of the machine's speed affects both. A ratio is the duration of a step before, divided by that after,
in one round: above one, the later checkout is faster. For each case the program prints the median ratio, and an
interval that holds the true median with the stated confidence, whatever the distribution (a sign test). The exit code
is 1 if this interval lies entirely below `LEAST` in some case.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.progress import Progress

from benchmarks.mixed import SIX
from benchmarks.stepping import document
from benchmarks.timed_checkout import CONTROL_SETS

LEAST = 0.97
"""The smallest ratio that does not count as a loss of speed."""

CONFIDENCE = 0.95
MODELS: dict[str, tuple[str, ...]] = {"ant": ("ant",), "humanoid": ("humanoid",), "six models": SIX}
WORLDS = {"host": (64, 1024), "cuda": (64, 8192)}
"""Numbers of worlds of each model, by backend."""

WARMUP = {"host": 50, "cuda": 200}
"""Steps before the timed ones, by backend: robots fall to the floor, and executors are tried on a GPU."""

SIDES = ("before", "after")


class Interval(NamedTuple):
    """Bounds of a median, and the confidence that they hold it."""

    low: float
    high: float
    confidence: float


def median_interval(values: Sequence[float], confidence: float = CONFIDENCE) -> Interval:
    """The narrowest interval between order statistics that holds the median with `confidence`, or else the widest.

    With probability sum_{i <= k} C(n, i) / 2^n, the k + 1 smallest values are all below the median.
    """
    ordered, n = sorted(values), len(values)
    found = Interval(ordered[0], ordered[-1], 1 - 2 ** (1 - n))
    for k in range(1, n // 2):
        held = 1 - 2 * sum(math.comb(n, i) for i in range(k + 1)) / 2**n
        if held < confidence:
            break
        found = Interval(ordered[k], ordered[n - 1 - k], held)
    return found


def summary(before: Sequence[float], after: Sequence[float]) -> dict[str, Any]:
    """Medians, spreads and ratio of durations of a step [us]. Both sequences have one entry for each round."""
    ratios = [b / a for b, a in zip(before, after, strict=True)]
    interval = median_interval(ratios)
    row: dict[str, Any] = {}
    for side, values in zip(SIDES, (before, after), strict=True):
        row[f"{side}_us"] = round(statistics.median(values), 1)
        row[f"{side}_us_spread"] = [round(min(values), 1), round(max(values), 1)]
    row["ratio"] = round(statistics.median(ratios), 4)
    row["ratio_interval"] = [round(interval.low, 4), round(interval.high, 4)]
    row["confidence"] = round(interval.confidence, 4)
    row["slower"] = interval.high < LEAST
    return row


def timed(checkout: Path, models: Sequence[str], worlds: int, steps: int, args: argparse.Namespace) -> float:
    """Duration of a step [us] in a new process.

    Raises:
        RuntimeError: the process failed.
    """
    program = Path(__file__).with_name("timed_checkout.py")
    numbers = {"worlds": worlds, "steps": steps, "warmup": args.warmup, "backend": args.backend, "dtype": args.dtype}
    options = [text for name, value in numbers.items() for text in (f"--{name}", str(value))]
    # with -P and without PYTHONPATH, the process cannot import modules of this checkout
    command = [sys.executable, "-P", str(program), "--checkout", str(checkout), "--model", *models, *options]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    answer = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd=checkout)
    if answer.returncode:
        why = (answer.stderr.strip().splitlines() or ["no message"])[-1]
        raise RuntimeError(f"timing {', '.join(models)} in {checkout} failed: {why}")
    return float(json.loads(answer.stdout.splitlines()[-1])["us_per_step"])


def steps_within(us_per_step: float, seconds: float) -> int:
    """The number of steps that take about `seconds`, as a multiple of the number of control sets."""
    return max(1, round(1e6 * seconds / us_per_step / CONTROL_SETS)) * CONTROL_SETS


def paired_row(name: str, worlds: int, progress: Progress, args: argparse.Namespace) -> dict[str, Any]:
    """Measure one case. A first run of each checkout fills the cache of kernels and sets the number of timed steps."""
    checkouts = {"before": args.before, "after": args.after}
    shown = f"{name}, {worlds} worlds" + (" of each" if len(MODELS[name]) > 1 else "")
    task = progress.add_task(shown, total=2 * (args.rounds + 1))
    found: dict[str, list[float]] = {side: [] for side in SIDES}
    steps = 5 * CONTROL_SETS
    for number in range(args.rounds + 1):
        for side in SIDES if number % 2 else SIDES[::-1]:
            found[side].append(timed(checkouts[side], MODELS[name], worlds, steps, args))
            progress.advance(task)
        if number == 0:
            steps = steps_within(found["before"].pop(), args.seconds)
            found["after"].clear()
    return {"case": name, "worlds_each": worlds, "steps": steps, **summary(found["before"], found["after"])}


def printed(row: dict[str, Any]) -> str:
    """A line of text for a case."""
    low, high = row["ratio_interval"]
    sides = [f"{row[f'{side}_us']} us ({'-'.join(map(str, row[f'{side}_us_spread']))})" for side in SIDES]
    verdict = "SLOWER" if row["slower"] else "ok"
    return (
        f"{row['case']:12} {row['worlds_each']:5} worlds: {sides[0]} before, {sides[1]} after, "
        f"ratio {row['ratio']:.3f} ({low:.3f}-{high:.3f} with {100 * row['confidence']:.1f} %) {verdict}"
    )


def revision(checkout: Path) -> str:
    """The commit of a checkout, as git describes it."""
    command = ["git", "-C", str(checkout), "describe", "--always", "--dirty"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def result_file(rows: list[dict[str, Any]], args: argparse.Namespace) -> dict[str, Any]:
    """The rows, and the revisions that were compared, without the paths of the checkouts."""
    revisions = {side: revision(getattr(args, side)) for side in SIDES}
    settings = {name: getattr(args, name) for name in ("backend", "dtype", "rounds", "seconds", "warmup")}
    words = [word for name, value in settings.items() for word in (f"--{name}", str(value))]
    words += ["--case", *map(repr, args.case), *(["--worlds", *map(str, args.worlds)] if args.worlds else [])]
    command = " ".join(["python -m benchmarks.paired --before BEFORE --after AFTER", *words])
    return {**document("benchmarks.paired", rows), **revisions, "command": command}


def checkout(text: str) -> Path:
    """An argument that names the root of a checkout."""
    path = Path(text).resolve()
    if not (path / "simengine" / "__init__.py").is_file():
        raise argparse.ArgumentTypeError(f"{text} holds no package simengine; give the root of a checkout")
    return path


def rounds(text: str) -> int:
    """An argument that is a number of rounds."""
    if (number := int(text)) > 0:
        return number
    raise argparse.ArgumentTypeError(f"{text} rounds compare nothing; give a positive number")


def main() -> int:
    """Compare the checkouts. The exit code is 1 if the later one is slower in some case.

    Raises:
        RuntimeError: a checkout could not be timed.
    """
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", type=checkout, required=True, help="root of the earlier checkout")
    parser.add_argument("--after", type=checkout, required=True, help="root of the later checkout")
    parser.add_argument("--backend", choices=list(WORLDS), default="host")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--case", nargs="+", choices=list(MODELS), default=list(MODELS))
    parser.add_argument("--worlds", nargs="+", type=int, help="worlds of each model (default: those of the backend)")
    parser.add_argument("--rounds", type=rounds, default=9, help="pairs a case; from six on the confidence is 95 %%")
    parser.add_argument("--seconds", type=float, default=2.0, help="about how long each process times steps")
    parser.add_argument("--warmup", type=int, help="steps before those that are timed (default: by backend)")
    parser.add_argument("--json", type=Path, help="file of the results")
    args = parser.parse_args()
    args.warmup = WARMUP[args.backend] if args.warmup is None else args.warmup
    rows: list[dict[str, Any]] = []
    with Progress(console=Console(stderr=True)) as progress:
        for name in args.case:
            for worlds in args.worlds or WORLDS[args.backend]:
                rows.append(paired_row(name, worlds, progress, args))
                print(printed(rows[-1]), flush=True)
                if args.json:
                    args.json.parent.mkdir(parents=True, exist_ok=True)
                    args.json.write_text(json.dumps(result_file(rows, args), indent=1) + "\n")
    return int(any(row["slower"] for row in rows))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except RuntimeError as error:  # a checkout that cannot be timed
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
