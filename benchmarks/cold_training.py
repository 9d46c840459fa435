"""Cold trainings until MuJoCo agrees: `python -m benchmarks.cold_training ant=5000,6000 --json FILE`.

Each training is a command of its own, `simengine train PRESET`, in which no kernel and no XLA program has been compiled
before: the folders of all caches are new and empty. Whenever the training keeps a policy as its best one, a copy is put
aside. For each target the first copy whose training saw a mean return of at least the target is then evaluated over 100
other episodes in Gymnasium's own MuJoCo environment. If their mean is below the target, the next copy's turn comes. A
row of the result has, for each target,

    seconds         from the start of the program to the policy that passes [s]; interpreter, imports and compilation
                    included
    evaluation_s    what the 100 episodes took in MuJoCo afterwards, with the start of that program [s]
    env_steps       of the training until then
    mujoco          what `simengine evaluate --in mujoco --json` says
    simengine       mean and deviation of the return in the training's own evaluation

`steps_per_s` counts environment steps in the time between the first update and the last one, with learning and
evaluations. The exit code is 0 if all targets are reached.
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
from simengine_configs import load_suite
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
    """What 100 episodes in MuJoCo say of a policy, and the wall-clock seconds of the program that ran them."""
    began = perf_counter()
    words = program("evaluate", str(kept.file), "--in", "mujoco", "--json")
    printed = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    seconds = perf_counter() - began
    own = {name: round(kept.evaluation[name], 3) for name in ("return_mean", "return_std")}
    return {
        "seconds": round(kept.seconds, 2),
        "env_steps": kept.evaluation["env_steps"],
        "evaluation_s": round(seconds, 2),
        "mujoco": json.loads(printed)["mujoco"],
        "simengine": own,
    }


def passing(all_kept: list[Kept], target: float, known: dict[Path, dict[str, Any]]) -> dict[str, Any]:
    """The result of the first policy that passes in MuJoCo; the target alone if none does."""
    for kept in all_kept:
        if kept.evaluation["return_mean"] < target:
            continue
        if kept.file not in known:
            known[kept.file] = evaluated(kept)
        if known[kept.file]["mujoco"]["return_mean"] >= target:
            return {"target": target, **known[kept.file]}
    return {"target": target}


def speed(folder: Path) -> int:
    """Environment steps a second between the first update and the last one."""
    curve, times = (read_csv(folder / f"{name}.csv") for name in ("curve", "times"))
    return round((curve[-1]["env_steps"] - curve[0]["env_steps"]) / (times[-1]["seconds"] - times[0]["seconds"]))


def row(preset: str, targets: list[float], seed: int, settings: list[str], logs: Path | None) -> dict[str, Any]:
    """The result of one cold training."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        all_kept, seconds = train(preset, [*settings, f"seed={seed}"], folder)
        if logs:
            logs.mkdir(parents=True, exist_ok=True)
            shutil.copy(folder / "log", logs / f"{preset}_{seed}.log")
        known: dict[Path, dict[str, Any]] = {}
        reached = [passing(all_kept, target, known) for target in targets]
        return {
            "preset": preset,
            "settings": settings,
            "seed": seed,
            "reached": reached,
            "kept": [[k.evaluation["env_steps"], round(k.seconds, 2), k.evaluation["return_mean"]] for k in all_kept],
            "whole_s": round(seconds, 2),
            "steps_per_s": speed(folder / "run"),
        }


def shown(rows: list[dict[str, Any]]) -> Table:
    """The rows as a table."""
    table = Table("preset", "seed", "target", "passes after", "evaluation", "in MuJoCo", "in simengine")
    for entry in rows:
        for at in entry["reached"]:
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


def suite() -> list[tuple[str, list[float]]]:
    """The tasks of `simengine train suite` and their thresholds."""
    return [(task, [float(entry["threshold"])]) for task, entry in load_suite().items()]


def main() -> int:
    """Run the trainings, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("trainings", nargs="*", type=wanted, metavar="PRESET=TARGET,TARGET", help="default: all tasks of the suite")
    add("--seeds", nargs="+", type=int, default=[0])
    add("--set", nargs="+", default=[], metavar="NAME=VALUE", help="settings of all trainings")
    add("--stop", action="store_true", help="end a training at an evaluation of 1 %% beyond its greatest target")
    add("--logs", type=Path, metavar="FOLDER", help="keep what the trainings printed")
    add("--json", type=Path)
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for preset, targets in options.trainings or suite():
        most = max(targets)
        settings = [*options.set, *[f"target_return={most + 0.01 * abs(most):g}"] * options.stop]
        for seed in options.seeds:
            rows.append(row(preset, targets, seed, settings, options.logs))
            write_json(document("benchmarks.cold_training", rows), options.json)
    Console(width=140).print(shown(rows))
    return int(any("mujoco" not in at for entry in rows for at in entry["reached"]))


if __name__ == "__main__":
    raise SystemExit(main())
