"""Training of many robots that step at three rates and pause: `python -m benchmarks.mixed_training --json FILE`.

Every robot has a policy of its own, which learns at the end of the robot's episodes (`benchmarks.evolution`). Robots
step in every step, in every second or in every fourth, pause at random, and have episodes of different lengths. So the
list of kernels differs from step to step. The same training runs in several ways, each from the same start, and has the
same bits in all of them. Times are medians over parts of the training.

    window                one simulation, by executor `streams` on lists that wait for counts
    window, call by call  the same without graphs of calls that come again
    window, ahead         the same on fixed lists that come and go
    window, whole         the same on whole steps
    window, own pace      the same, and no robot waits for another: each has a list of its own for all timed steps,
                          in which it acts, steps, learns and is reset (`benchmarks.own_pace`)
    kept graphs           one simulation, by `graph-cached`, as a simulation takes it by itself
    graphs, own pace      the lists of *window, own pace* as graphs, which are built anew, since the lists vary
    one by one            a simulation for each robot, which step one after another, by kept graphs
    serial                one simulation, by `serial` on lists that wait for counts

A step has five steps of the simulation with the same controls.
"""

from __future__ import annotations

import argparse
import hashlib
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

import simengine
from benchmarks.evolution import CudaLearners, HostLearners
from benchmarks.own_pace import OwnPace
from benchmarks.stepping import document
from simengine.cli.results.result_file import write_json
from simengine.varying_workload import absent
from simengine.zoo import random_robot

_EPISODE = (20, 40)  # steps of a robot in an episode, at least and at most
_FRAMES = 5  # steps of a simulation in one of these, with the same controls
WAYS: dict[str, dict[str, Any]] = {
    "window": {"executor": "streams", "emission": "counted"},
    "window, call by call": {"executor": "streams", "emission": "counted", "executor_options": {"pieces": False}},
    "window, ahead": {"executor": "streams", "emission": "ahead"},
    "window, whole": {"executor": "streams", "emission": "whole"},
    "window, own pace": {"executor": "streams", "emission": "whole"},
    "kept graphs": {"executor": "graph-cached", "emission": "auto"},
    "graphs, own pace": {"executor": "graph-cached", "emission": "auto"},
    "one by one": {"executor": "graph-cached", "emission": "auto"},
    "serial": {"executor": "serial", "emission": "counted"},
}


class Training:
    """One training.

    Args:
        way: a name in WAYS.
        models: the robots.
        worlds: of each robot.
        backend: of the simulations.
        seed: of the steps in which robots pause, and of the lengths of episodes.
    """

    def __init__(self, way: str, models: Sequence[simengine.Model], worlds: int, backend: str, seed: int = 0) -> None:
        options: dict[str, Any] = dict(WAYS[way])
        if backend == "host":  # for tests: the scheduler's other executors need a GPU
            options = {"executor": "serial" if way == "serial" else "threads"}
        groups = [[(model, worlds)] for model in models] if way == "one by one" else [[(m, worlds) for m in models]]
        self.sims = [simengine.Simulation(pairs, backend=backend, on_nonfinite="freeze", **options) for pairs in groups]
        self.groups = [group for sim in self.sims for group in sim.groups]
        self._absent = absent(len(models), seed)
        self._lengths = np.random.default_rng(seed).integers(*_EPISODE, len(models)).tolist()
        self._since = [0] * len(models)
        self._step = 0
        self.learners = CudaLearners(self.groups) if backend == "cuda" else HostLearners(self.groups)
        self._own_pace = None
        if way.endswith("own pace"):
            self._own_pace = OwnPace(self.sims[0], self.learners, _FRAMES, self._lengths)

    def _row(self) -> list[bool]:
        """Which robots leave out the next step."""
        row = self._absent[self._step % len(self._absent)]
        self._step += 1
        return row

    def step(self) -> int:
        """Let the robots step that are due, and those learn whose episodes have ended. Returns how many stepped."""
        row = self._row()
        due = [number for number, left_out in enumerate(row) if not left_out]
        self.learners.act(due)
        if len(self.sims) == 1:
            self.sims[0].pause(row)
            self.sims[0].step(_FRAMES)
        else:
            for number in due:
                self.sims[number].step(_FRAMES)
        for number in due:
            self._since[number] += 1
            if self._since[number] == self._lengths[number]:
                self.learners.end_episode(number)
                self.learners.reset(number)
                self._since[number] = 0
        return len(due)

    def steps(self, number: int) -> int:
        """Make some steps. Returns how many steps robots have made in them."""
        if self._own_pace is None:
            return sum(self.step() for _ in range(number))
        rows = [self._row() for _ in range(number)]
        self.sims[0].schedule.run_lists(self._own_pace.lists(rows))
        return sum(row.count(False) for row in rows)

    def timed(self, steps: int) -> tuple[float, int]:
        """Make some steps. Returns how long they took [s], and how many steps robots have made in them."""
        self.synchronize()
        began = perf_counter()
        made = self.steps(steps)
        self.synchronize()
        return perf_counter() - began, made

    def synchronize(self) -> None:
        """Wait for everything."""
        for sim in self.sims:
            sim.synchronize()

    def close(self) -> None:
        """Close the simulations."""
        for sim in self.sims:
            sim.close()


def row(way: str, models: Sequence[simengine.Model], args: argparse.Namespace) -> dict[str, Any]:
    """The measurements of one way."""
    training = Training(way, models, args.worlds, args.backend)
    training.timed(args.warmup)
    parts = [training.timed(args.steps) for _ in range(args.parts)]
    rates = sorted(args.worlds * made / seconds for seconds, made in parts)
    distances = [own for own in training.learners.distances if len(own) > 1]
    first, last = (
        round(statistics.fmean(statistics.fmean(own[part(len(own))]) for own in distances), 4) if distances else None
        for part in (lambda n: slice(0, -(-n // 3)), lambda n: slice(n - -(-n // 3), n))
    )
    found = {
        "way": way,
        "executor": training.sims[0].schedule.executor,
        "emission": training.sims[0].schedule.emission,
        "us_per_step": round(1e6 * statistics.median(seconds for seconds, _ in parts) / args.steps, 1),
        "environment_steps_per_s": round(statistics.median(rates)),
        "range_per_s": [round(rates[0]), round(rates[-1])],
        "robots_per_step": round(sum(made for _, made in parts) / (args.parts * args.steps), 2),
        "frames": _FRAMES,
        "distance_in_first_third": first,
        "distance_in_last_third": last,
        "bits": hashlib.sha256(training.learners.bits()).hexdigest()[:16],
    }
    training.close()
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Train in each way, and print and write the measurements. Returns 1 if bits differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--robots", type=int, default=64)
    parser.add_argument("--worlds", type=int, default=16, help="worlds of each robot")
    parser.add_argument("--warmup", type=int, default=200, help="steps before those that are timed")
    parser.add_argument("--steps", type=int, default=150, help="timed steps of a part")
    parser.add_argument("--parts", type=int, default=3)
    parser.add_argument("--ways", nargs="+", choices=sorted(WAYS), default=list(WAYS))
    parser.add_argument("--backend", choices=("cuda", "host"), default="cuda")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args(arguments)
    models = [simengine.load_model(random_robot(seed)) for seed in range(args.robots)]
    rows = []
    for way in args.ways:
        rows.append(row(way, models, args))
        print(rows[-1], flush=True)
        write_json(document("benchmarks.mixed_training", rows), args.json)
    return int(len({each["bits"] for each in rows}) > 1)


if __name__ == "__main__":
    sys.exit(main())
