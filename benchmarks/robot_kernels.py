"""The kernels that take the time of robots: `python -m benchmarks.robot_kernels ROBOT ... --json FILE`.

Robots start as in `simengine bench peers`. After some steps the time of a step is measured, and then a few steps are
recorded kernel by kernel. Kernels may run side by side, so that their times add up to more than the time of a step.
The file is written after each case, because a later one may end the process.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

from benchmarks.stepping import document
from simengine import Simulation
from simengine.cli.bench.peers.models import chosen_models
from simengine.cli.bench.peers.ours import Simengine
from simengine.cli.bench.peers.problem import Named, make_problem
from simengine.cli.results.result_file import write_json


def kernels(sim: Simulation, traces: int) -> dict[str, float]:
    """Time of each kernel in a step, the medians of several recorded steps, the longest first [us]."""
    found = []
    for _ in range(traces):
        step: defaultdict[str, float] = defaultdict(float)
        for event in sim.schedule.trace_step().events:
            step[event.name] += 1e6 * (event.end - event.start)
        found.append(step)
    names = {name for step in found for name in step}
    medians = {name: round(statistics.median(step[name] for step in found), 1) for name in names}
    return dict(sorted(medians.items(), key=lambda item: (-item[1], item[0])))


def case(robot: Named, worlds: int, args: argparse.Namespace) -> dict[str, Any]:
    """Measure one robot with one number of worlds, and return a row of results."""
    engine = Simengine("gpu" if args.backend == "cuda" else "cpu", "float32", args.backend)
    try:
        engine.prepare(make_problem(robot, worlds, 0))
        engine.step(args.warmup)
        state, times = engine.state(), []
        for _ in range(3):
            engine.set_state(state)
            times.append(1e6 * engine.step(args.steps) / args.steps)
        engine.set_state(state)
        found, schedule = kernels(engine.simulation, args.traces), engine.simulation.schedule
        return {
            "model": robot.name,
            "worlds": worlds,
            "executor": schedule.executor,
            "us_per_step": round(statistics.median(times), 1),
            "kernels_us": found,
        }
    except Exception as error:  # a robot that cannot be stepped is a result, too
        return {"model": robot.name, "worlds": worlds, "error": f"{type(error).__name__}: {error}"[:300]}
    finally:
        engine.close()


def main(arguments: list[str] | None = None) -> int:
    """Measure robots, and print and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "models", nargs="*", metavar="ROBOT", help="names as of simengine bench peers; all, if none is named"
    )
    parser.add_argument("--robots-dir", type=Path, help="folder of packed robots")
    parser.add_argument("--worlds", nargs="+", type=int, default=[512, 8192])
    parser.add_argument("--backend", default="cuda")
    parser.add_argument("--warmup", type=int, default=60, help="steps before those that are timed")
    parser.add_argument("--steps", type=int, default=30, help="steps of one of three repeats")
    parser.add_argument("--traces", type=int, default=3, help="recorded steps")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args(arguments)
    robots, absent = chosen_models(args.models, () if args.models else ("robots",), args.robots_dir)
    for reason in absent.values():
        print(reason, file=sys.stderr)
    rows = []
    for robot in robots:
        for worlds in args.worlds:
            rows.append(case(robot, worlds, args))
            print(json.dumps(rows[-1]), flush=True)
            write_json(document("benchmarks.robot_kernels", rows), args.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
