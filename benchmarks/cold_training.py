"""Cold trainings until MuJoCo agrees: `python -m benchmarks.cold_training ant=5000,6000 --json FILE`.

Each training is a command of its own, `simengine train PRESET`, in which no kernel and no XLA program has been compiled
before: the folders of all caches are new and empty. Whenever the training keeps a policy as its best one, a copy is put
aside. For each target the first copy whose training saw a mean return of at least the target is then evaluated over 100
other episodes in Gymnasium's own MuJoCo environment, and in simengine. If MuJoCo's mean is below the target, the next
copy's turn comes. A row of the result has, for each target,

    seconds               from the start of the program to the policy that passes [s]; interpreter, imports and
                          compilation included
    evaluation_s          what these 100 episodes took in MuJoCo afterwards, with the start of that program [s]
    env_steps             of the training until then
    mujoco, simengine     the mean return, its deviation and whatever else `simengine evaluate --json` says

It needs a target for each training and passes with exit code 0 if all are reached.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, sleep
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.stepping import document
from simengine.cli.results.result_file import write_json
from simengine_training.curve import read_csv

_LOOK = 0.02  # between two looks at the folder of a training [s]
_CACHES = {"SIMENGINE_CACHE_DIR": "simengine", "CUPY_CACHE_DIR": "cupy", "CUDA_CACHE_PATH": "driver"}


@dataclass(frozen=True)
class Kept:
    """A policy that a training kept as its best one.

    Attributes:
        file: a copy of it.
        seconds: when it was there, from the start of the program [s].
        evaluation: the row of the training's own evaluation.
    """

    file: Path
    seconds: float
    evaluation: dict[str, Any]


def program(*words: str) -> list[str]:
    """The command `simengine ...`, by this interpreter."""
    return [sys.executable, "-m", "simengine.cli.main", *words]


def cold(folder: Path) -> dict[str, str]:
    """An environment in which all caches are empty."""
    kept = {name: value for name, value in os.environ.items() if name != "JAX_COMPILATION_CACHE_DIR"}
    return kept | {name: str(folder / "caches" / value) for name, value in _CACHES.items()}


def train(preset: str, settings: list[str], folder: Path) -> tuple[list[Kept], float]:
    """Run a training, and return what it kept and how long it took [s].

    Raises:
        subprocess.CalledProcessError: it failed.
    """
    out, copies = folder / "run", list[tuple[Path, float]]()
    words, seen = program("train", preset, *settings, "--out", str(out)), 0
    with (folder / "log").open("w") as log:
        began = perf_counter()
        running = subprocess.Popen(words, env=cold(folder), stdout=log, stderr=subprocess.STDOUT)
        ended = False
        while not ended:
            ended = running.poll() is not None
            now = perf_counter() - began
            file = out / "policy.npz"
            if file.exists() and (is_now := file.stat().st_mtime_ns) != seen:
                seen = is_now
                copies.append((Path(shutil.copy(file, folder / f"policy{len(copies)}.npz")), now))
            sleep(_LOOK)
        seconds = perf_counter() - began
    if running.returncode:
        raise subprocess.CalledProcessError(running.returncode, words, (folder / "log").read_text())
    best, records = float("-inf"), []
    for row in read_csv(out / "evaluations.csv"):
        if row["return_mean"] > best:
            best = row["return_mean"]
            records.append(row)
    if len(copies) != len(records):
        raise RuntimeError(f"{len(copies)} policies were seen, and {len(records)} were kept")
    return [Kept(*copy, row) for copy, row in zip(copies, records, strict=True)], seconds


def evaluated(kept: Kept) -> dict[str, Any]:
    """What 100 episodes say, with the wall-clock seconds of those in MuJoCo, the start of the program included."""
    found, seconds = {}, 0.0
    for engine in ("simengine", "mujoco"):
        began = perf_counter()
        words = program("evaluate", str(kept.file), "--in", engine, "--json")
        found[engine] = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)[engine]
        seconds = perf_counter() - began
    return {**found, "evaluation_s": round(seconds, 2)}


def passing(all_kept: list[Kept], target: float, known: dict[Path, dict[str, Any]]) -> dict[str, Any] | None:
    """The result of the first policy that passes in MuJoCo; None if none does."""
    for kept in all_kept:
        if kept.evaluation["return_mean"] < target:
            continue
        if kept.file not in known:
            known[kept.file] = evaluated(kept)
        if known[kept.file]["mujoco"]["return_mean"] >= target:
            steps = kept.evaluation["env_steps"]
            return {"target": target, "seconds": round(kept.seconds, 2), "env_steps": steps, **known[kept.file]}
    return None


def row(preset: str, targets: list[float], seed: int, settings: list[str]) -> dict[str, Any]:
    """The result of one cold training."""
    with tempfile.TemporaryDirectory() as name:
        all_kept, seconds = train(preset, [*settings, f"seed={seed}"], Path(name))
        known: dict[Path, dict[str, Any]] = {}
        reached = [passing(all_kept, target, known) or {"target": target} for target in targets]
        seen = [
            [k.evaluation["env_steps"], round(k.seconds, 2), round(k.evaluation["return_mean"], 2)] for k in all_kept
        ]
        end = known.get(all_kept[-1].file) or evaluated(all_kept[-1])
    return {
        "preset": preset, "settings": settings, "seed": seed, "reached": reached, "whole_s": round(seconds, 2),
        "kept": seen, "best": end,
    }  # fmt: skip


def shown(rows: list[dict[str, Any]]) -> Table:
    """The rows as a table."""
    table = Table("preset", "seed", "target", "passes after", "evaluation", "in MuJoCo", "in simengine")
    for entry in rows:
        for at in [*entry["reached"], {"target": "best", "seconds": entry["whole_s"], **entry["best"]}]:
            cells = ["not reached", "", "", ""]
            if "mujoco" in at:
                cells = [f"{at['seconds']:.1f} s", f"{at['evaluation_s']:.1f} s"]
                cells += [f"{at[e]['return_mean']:,.2f} ± {at[e]['return_std']:,.2f}" for e in ("mujoco", "simengine")]
            table.add_row(entry["preset"], str(entry["seed"]), str(at["target"]), *cells)
    return table


def wanted(text: str) -> tuple[str, list[float]]:
    """A preset and its targets, of PRESET=TARGET,TARGET."""
    preset, _, targets = text.partition("=")
    if not preset or not targets:
        raise argparse.ArgumentTypeError(f"{text!r} is not PRESET=TARGET,TARGET")
    return preset, [float(target) for target in targets.split(",")]


def main() -> int:
    """Run the trainings, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trainings", nargs="+", type=wanted, metavar="PRESET=TARGET,TARGET")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--set", nargs="+", default=[], metavar="NAME=VALUE", help="settings of all trainings")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for preset, targets in options.trainings:
        for seed in options.seeds:
            rows.append(row(preset, targets, seed, options.set))
            write_json(document("benchmarks.cold_training", rows), options.json)
    Console(width=140).print(shown(rows))
    return int(any("mujoco" not in at for entry in rows for at in entry["reached"]))


if __name__ == "__main__":
    raise SystemExit(main())
