"""Speed of several models in one batch, by executor: `python -m benchmarks.mixed --worlds 64 --json out.json`.

An executor may have a way of emission and options: `graph-cached:emission=ahead:together=1`. Every group uses ten
random control sets in turn. The program also gives the time of the same models one after another, in simengine and,
from the result file of `benchmarks.peer_mujoco_warp`, in MuJoCo Warp. Each row has the largest error of `qacc` against
MuJoCo C over all groups, in the states that were timed.

With `--pause 0.1` steps are also made one at a time, with constant controls: three rounds of steps of all groups and of
steps in each of which a random tenth of the groups pauses, in turn.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import simengine
from benchmarks.models import compiled, short
from benchmarks.stepping import (
    CONTROL_SETS,
    document,
    group_controls,
    group_error,
    scatter_group,
    steps_of_all_sets,
    timed_steps,
)
from simengine.cli.results.result_file import write_json

SIX = ("ant", "half_cheetah", "hopper", "walker2d_v5", "humanoid", "humanoidstandup")


def started(models: Sequence[simengine.Model], worlds: int, executor: str, args: argparse.Namespace) -> Any:
    """A simulation of the models in scattered states, and ten control sets for each group.

    `executor` is a name, or a name with a way of emission and options.
    """
    name, *settings = executor.split(":")
    given = dict(setting.split("=", 1) for setting in settings)
    emission = given.pop("emission", "")
    options = {option: int(value) if value.isdigit() else value for option, value in given.items()}
    sim = simengine.Simulation(
        [(model, worlds) for model in models],
        backend=args.backend,
        executor=name,
        dtype=args.dtype,
        emission=emission or args.emission,
        shards=args.shards,
        executor_options=options,
    )
    for group in sim.groups:
        scatter_group(group, 2)
    return sim, [group_controls(sim, group, 1) for group in sim.groups]


def duration(sim: simengine.Simulation, controls: list[Any], args: argparse.Namespace) -> float:
    """Duration of a step [s]."""
    ctrl = controls if len(controls) > 1 else controls[0]
    for _ in range(args.warmup // CONTROL_SETS):
        sim.step(CONTROL_SETS, ctrl=ctrl)
    sim.synchronize()
    rounds = args.steps // CONTROL_SETS
    begin = time.perf_counter()
    for _ in range(rounds):
        sim.step(CONTROL_SETS, ctrl=ctrl)
    sim.synchronize()
    return (time.perf_counter() - begin) / (rounds * CONTROL_SETS)


def one_by_one(sim: simengine.Simulation, pause: float, steps: int, seed: int) -> float:
    """Duration of a step [s] if steps are made one at a time, in each of which a share of the groups pauses."""
    chosen = np.random.default_rng(seed).random((steps, len(sim.groups))) < pause
    sim.synchronize()
    begin = time.perf_counter()
    for row in chosen.tolist():
        sim.pause(row)
        sim.step()
    sim.synchronize()
    seconds = (time.perf_counter() - begin) / steps
    sim.pause([False] * len(sim.groups))
    return seconds


def pausing_row(sim: simengine.Simulation, args: argparse.Namespace) -> dict[str, Any]:
    """Steps of all groups and steps in which some pause, one at a time."""
    found: dict[float, list[float]] = {0.0: [], args.pause: []}
    for pause in found:
        one_by_one(sim, pause, args.warmup, 9)
    for repeat in range(3):
        for pause, seconds in found.items():
            seconds.append(one_by_one(sim, pause, args.steps, repeat))
    every, some = (statistics.median(seconds) for seconds in found.values())
    spread = [round(1e6 * bound, 1) for bound in (min(found[args.pause]), max(found[args.pause]))]
    return {
        "pause": args.pause,
        "us_per_single_step": round(1e6 * every, 1),
        "us_per_step_with_pauses": round(1e6 * some, 1),
        "us_per_step_with_pauses_range": spread,
        "pauses_over_all": round(some / every, 3),
    }


def mixed_row(
    models: Sequence[simengine.Model], worlds: int, executor: str, args: argparse.Namespace
) -> dict[str, Any]:
    """Measure one executor on the mixed batch, and return a row of results."""
    sim, controls = started(models, worlds, executor, args)
    seconds = duration(sim, controls, args)
    row: dict[str, Any] = {
        "worlds_each": worlds,
        "executor": sim.schedule.executor,
        "emission": sim.schedule.emission,
        "options": executor.partition(":")[2],
        "us_per_step": round(1e6 * seconds, 1),
        "world_steps_per_s": round(sim.num_worlds / seconds),
        "kernels_per_step": len(sim.schedule.kernel_list),
    }
    if args.pause:
        row |= pausing_row(sim, args)
    sim.forward()
    row["qacc_error"] = float(f"{max(group_error(group, 16) for group in sim.groups):.2e}")
    traces = [sim.schedule.trace_step(whole_steps=True) for _ in range(args.traces)]
    if traces:
        row["concurrency"] = round(statistics.median(t.concurrency() for t in traces), 2)
        row["idle_share"] = round(statistics.median(t.idle_share() for t in traces), 3)
        if args.plot and executor == args.executor[-1] and worlds == args.worlds[0]:
            traces[-1].plot(args.plot)
    sim.close()
    return row


def attempted(
    models: Sequence[simengine.Model], worlds: int, executor: str, args: argparse.Namespace
) -> dict[str, Any]:
    """The same, or a row with the reason of a failure, so that the other executors are measured."""
    try:
        return mixed_row(models, worlds, executor, args)
    except (RuntimeError, ValueError) as error:
        return {"worlds_each": worlds, "executor": executor, "error": f"{type(error).__name__}: {error}"}


def alone_us(models: Sequence[simengine.Model], worlds: int, executor: str, args: argparse.Namespace) -> list[float]:
    """Duration of a step of each model in a simulation of its own [us]."""
    found = []
    for model in models:
        sim, controls = started([model], worlds, executor, args)
        found.append(round(1e6 * duration(sim, controls, args), 1))
        sim.close()
    return found


def peer_us(path: Path | None, names: Sequence[str], worlds: int) -> float | None:
    """Time of MuJoCo Warp for a step of all models one after another [us]; None if it has not timed each of them."""
    if path is None:
        return None
    timed = (row for row in json.loads(path.read_text())["rows"] if "error" not in row)
    rows = {(row["model"], row["worlds"]): row["us_per_step"] for row in timed}
    wanted = [(short(name), worlds) for name in names]
    return round(sum(rows[key] for key in wanted), 1) if rows.keys() >= set(wanted) else None


def beside(
    row: dict[str, Any],
    names: Sequence[str],
    models: Sequence[simengine.Model],
    executor: str,
    args: argparse.Namespace,
) -> dict[str, Any]:
    """Columns of a row for the models one after another, in simengine and in MuJoCo Warp."""
    found: dict[str, Any] = {}
    worlds, own = row["worlds_each"], row["us_per_step"]
    if not args.no_alone:
        alone = alone_us(models, worlds, executor, args)
        found |= {"alone_us": alone, "one_after_another_us": round(float(np.sum(alone)), 1)}
        found["over_one_after_another"] = round(found["one_after_another_us"] / own, 2)
    peer = peer_us(args.peer_json, names, worlds)
    if peer is not None:
        found |= {"peer": "MuJoCo Warp", "peer_us": peer, "over_peer": round(peer / own, 2)}
    return found


def main() -> int:
    """Run the cases, and print and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", nargs="+", default=list(SIX), help="names or paths; robot:SEED for random ones")
    parser.add_argument("--robots", type=int, help="so many random robots instead")
    parser.add_argument("--worlds", nargs="+", type=int, default=[64, 256, 1024], help="worlds of each model")
    parser.add_argument("--backend", default="auto")
    parser.add_argument("--executor", nargs="+", default=["auto"])
    parser.add_argument("--emission", default="auto")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--shards", type=int)
    parser.add_argument("--warmup", type=steps_of_all_sets, default=200)
    parser.add_argument("--steps", type=timed_steps, default=500)
    parser.add_argument("--pause", type=float, default=0.0, help="share of the groups that pauses in each step")
    parser.add_argument("--traces", type=int, default=3)
    parser.add_argument("--no-alone", action="store_true", help="leave out the models one after another")
    parser.add_argument("--plot", type=Path, help="picture of a step by the last executor with the fewest worlds")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--peer-json", type=Path, help="results of MuJoCo Warp on this machine, taken in the same run")
    args = parser.parse_args()
    names = [f"robot:{seed}" for seed in range(args.robots)] if args.robots else args.model
    models = [simengine.load_model(compiled(name)) for name in names]
    rows = []
    for worlds in args.worlds:
        for executor in args.executor:
            shown = f"{args.robots} random robots" if args.robots else [short(name) for name in names]
            row: dict[str, Any] = {"models": shown, **attempted(models, worlds, executor, args)}
            rows.append(row | ({} if "error" in row else beside(row, names, models, executor, args)))
            print(json.dumps(rows[-1]), flush=True)
            write_json(document("benchmarks.mixed", rows), args.json)  # a later failure loses nothing
    return 0


if __name__ == "__main__":
    sys.exit(main())
