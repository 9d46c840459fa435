"""One result file of `simengine train suite`: `python -m benchmarks.suite out/suite --json FILE --picture FILE`.

The folder is that of the suite. In it `evaluations/TASK.json` is what

    simengine evaluate out/suite/TASK --in both --episodes 100 --json

printed for a task. A row of the result has, for each training,

    seconds           from the start of the command to the end of the training, and to the evaluation that first
                      reached the task's threshold, and the return that mjlab publishes
    steps             environment steps to these points
    return            mean and deviation over the 100 episodes, in simengine and in MuJoCo

Returns that choose a checkpoint come from other episodes than those reported.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table

from simengine.cli.results.result_file import write_json
from simengine_configs import load_suite
from simengine_training.curve import Row, read_csv

# mjlab (MuJoCo Warp, PPO of RSL-RL), its BENCHMARK.md of September 2026, one seed on an RTX PRO 5000: the mean return
# over 1000 deterministic episodes, minutes without evaluation to the chosen checkpoint, million environment steps.
MJLAB = {
    "ant": (6294, 13.5, 147.6),
    "half_cheetah": (6490, 6.2, 167.2),
    "hopper": (3100, 7.7, 147.6),
    "walker2d": (7046, 7.8, 127.9),
    "humanoid": (12049, 82.4, 627.9),
    "humanoid_standup": (395345, 28.0, 245.9),
    "inverted_pendulum": (1000, 1.0, 29.6),
    "inverted_double_pendulum": (9295, 2.7, 49.3),
    "swimmer": (342, 5.2, 144.7),
    "reacher": (-3.47, 2.7, 92.3),
    "pusher": (-28.9, 11.3, 209.7),
}
_POINTS = 60  # of a curve in the result file


class Training:
    """A training's folder."""

    def __init__(self, folder: Path):
        self.summary: dict[str, Any] = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
        self.curve, self.evaluations, self.times = (
            read_csv(folder / f"{name}.csv") for name in ("curve", "evaluations", "times")
        )

    @property
    def seconds(self) -> float:
        """From the start of the command to the end of the training [s]."""
        return self.times[-1]["seconds"]

    def reached(self, target: float) -> dict[str, float] | None:
        """Seconds and steps to the first evaluation of at least this return; None if there is none."""
        for row in self.evaluations:
            if row["return_mean"] >= target:
                return {"seconds": self._time_of(row), "env_steps": row["env_steps"]}
        return None

    def _time_of(self, evaluation: Row) -> float:
        return next(t["seconds"] for t in self.times if t["update"] == evaluation["update"] and t["evaluation"])

    def evaluated(self) -> list[list[float]]:
        """Environment steps, seconds and mean return of each evaluation."""
        return [[row["env_steps"], self._time_of(row), round(row["return_mean"], 2)] for row in self.evaluations]

    def points(self) -> list[list[float]]:
        """Environment steps, seconds and return of some updates."""
        seconds = {t["update"]: t["seconds"] for t in self.times if not t["evaluation"]}
        rows = [row for row in self.curve if row["return_mean"] == row["return_mean"]]
        chosen = rows[:: max(1, len(rows) // _POINTS)]
        return [[row["env_steps"], seconds[row["update"]], round(row["return_mean"], 2)] for row in chosen]


def row_of(task: str, training: Training, evaluation: dict[str, Any], threshold: float) -> dict[str, Any]:
    """The result of one training."""
    theirs, minutes, millions = MJLAB[task]
    found = {engine: evaluation[engine] for engine in ("simengine", "mujoco")}
    return {
        "task": task,
        "seed": training.summary["arguments"]["seed"],
        "threshold": threshold,
        "return_in_mujoco": found["mujoco"]["return_mean"],
        "deviation_in_mujoco": found["mujoco"]["return_std"],
        "return_in_simengine": found["simengine"]["return_mean"],
        "episodes": found["mujoco"]["episodes"],
        "seconds": training.seconds,
        "env_steps": training.summary["env_steps"],
        "to_threshold": training.reached(threshold),
        "to_mjlabs_return": training.reached(theirs),
        "mjlab": {"return": theirs, "minutes": minutes, "million_steps": millions},
        "evaluations": training.evaluated(),
        "curve": training.points(),
    }


def picture(rows: list[dict[str, Any]], path: Path) -> None:
    """Draw the learning curve of each training over its seconds."""
    columns = min(4, len(rows))
    lines = -(-len(rows) // columns)
    figure = Figure(figsize=(3.2 * columns, 2.5 * lines), layout="constrained")
    axes = figure.subplots(lines, columns, squeeze=False).ravel()
    for axis, row in zip(axes, rows, strict=False):
        _, seconds, returns = zip(*row["curve"], strict=True)
        _, at, means = zip(*row["evaluations"], strict=True)
        axis.plot(seconds, returns, label="while training")
        axis.plot(at, means, ".", label="most likely actions")
        axis.set_xlim(left=0)
        axis.axhline(row["threshold"], color="gray", linestyle=":")
        axis.set(title=f"{row['task']}, seed {row['seed']}", xlabel="seconds since the start", ylabel="return")
        axis.grid(alpha=0.3)
    axes[0].legend(fontsize="small")
    for axis in axes[len(rows) :]:
        axis.set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=100)


def shown(rows: list[dict[str, Any]]) -> Table:
    """The rows as a table."""
    table = Table("task", "seed", "in MuJoCo", "in simengine", "threshold at", "mjlab's return at", "whole")
    for row in rows:
        times = [
            f"{at['seconds']:.1f} s" if (at := row[name]) else "-" for name in ("to_threshold", "to_mjlabs_return")
        ]
        table.add_row(
            row["task"],
            str(row["seed"]),
            f"{row['return_in_mujoco']:.1f} +- {row['deviation_in_mujoco']:.1f}",
            f"{row['return_in_simengine']:.1f}",
            *times,
            f"{row['seconds']:.1f} s",
        )
    return table


def markdown(result: dict[str, Any]) -> str:
    """The table of the guide to training, from a result file."""
    head = ("task", "return in MuJoCo", "in simengine", "seconds", "to the threshold", "mjlab's return",
            "mjlab's minutes", "mjlab's million steps", "seconds to that return", "million steps to it")  # fmt: skip
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for row in result["rows"]:
        at, same = row["to_threshold"], row["to_mjlabs_return"]
        cells = (
            row["task"] + (f", seed {row['seed']}" if row["seed"] else ""),
            f"{row['return_in_mujoco']:,.1f} ± {row['deviation_in_mujoco']:,.1f}",
            f"{row['return_in_simengine']:,.1f}",
            f"{row['seconds']:.0f}",
            f"{row['threshold']:,g} in {at['seconds']:.0f}" if at else f"{row['threshold']:,g} not reached",
            f"{row['mjlab']['return']:,g}",
            f"{row['mjlab']['minutes']:g}",
            f"{row['mjlab']['million_steps']:g}",
            f"{same['seconds']:.0f}" if same else "not reached",
            _millions(same["env_steps"]) if same else "",
        )
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _millions(steps: int) -> str:
    """A number of steps in millions, which is not zero."""
    return f"{steps / 1e6:.1f}" if steps >= 100_000 else f"{steps / 1e6:.1g}"


def main() -> int:
    """Collect the results. The exit code is 1 if a return in MuJoCo is below its threshold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="folder of the suite")
    parser.add_argument("--command", default="simengine train suite", help="the command that trained")
    parser.add_argument("--note", help="what else a reader has to know")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--picture", type=Path)
    options = parser.parse_args()
    rows, header = [], dict[str, Any]()
    for task, entry in load_suite().items():
        for file in sorted((options.folder / "evaluations").glob(f"{task}*.json"), key=lambda file: file.stem):
            evaluation = json.loads(file.read_text(encoding="utf-8"))
            if file.stem.partition("-")[0] != task:  # TASK.json, or TASK-seedN.json
                continue
            folder = options.folder / task / file.stem.partition("-")[2]
            header = header or {name: evaluation[name] for name in ("hardware", "versions", "date")}
            rows.append(row_of(task, Training(folder), evaluation, entry["threshold"]))
    Console(width=140).print(shown(rows))
    note = {"note": options.note} if options.note else {}
    write_json({**header, "command": options.command, **note, "rows": rows}, options.json)
    if options.picture:
        picture(rows, options.picture)
    return int(any(row["return_in_mujoco"] < row["threshold"] for row in rows))


if __name__ == "__main__":
    raise SystemExit(main())
