"""Shares of kernels in steps on a CPU: `python -m benchmarks.host_profile MODEL... --worlds 64 1024`.

Models and states are those of `simengine bench peers`: worlds are scattered, stepped `--warmup` times, and then
profiled. One thread takes the shards in turn and makes the calls of their whole steps one by one, so that each has a
time. Times are microseconds of one core for a step of one world, and the table ends with their sum. Beside it stands
the time of a step of all worlds by the executor that simulations have, on all cores, in cores times time: what it is
above the sum is waiting, waking threads, and what cores take from each other.

`--mujoco` adds the parts of a step of MuJoCo's C in the same states, from its own timers.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from time import perf_counter
from typing import Any, NamedTuple

import mujoco
import numpy as np
from rich.console import Console
from rich.table import Table

from simengine.cli.bench.peers.models import chosen_models
from simengine.cli.bench.peers.ours import Simengine
from simengine.cli.bench.peers.problem import Problem, State, load, make_problem
from simengine_scheduler.executors.processors import usable_processors

_NOTHING = frozenset[str]()
_LEAST_SHARE = 0.005  # kernels with less are added up in one line
_SAMPLED = 8  # worlds that MuJoCo steps
_TIMERS = {
    "kinematics": mujoco.mjtTimer.mjTIMER_POS_KINEMATICS,
    "inertia": mujoco.mjtTimer.mjTIMER_POS_INERTIA,
    "collision": mujoco.mjtTimer.mjTIMER_POS_COLLISION,
    "rows": mujoco.mjtTimer.mjTIMER_POS_MAKE,
    "projection": mujoco.mjtTimer.mjTIMER_POS_PROJECT,
    "velocity": mujoco.mjtTimer.mjTIMER_VELOCITY,
    "actuation": mujoco.mjtTimer.mjTIMER_ACTUATION,
    "solver": mujoco.mjtTimer.mjTIMER_CONSTRAINT,
    "integrator": mujoco.mjtTimer.mjTIMER_ADVANCE,
}


class Part(NamedTuple):
    """A kernel of a step, or a part of MuJoCo's step.

    Attributes:
        name: its name.
        microseconds: time of one core for a step of one world.
    """

    name: str
    microseconds: float


def kernel_times(engine: Simengine, problem: Problem, steps: int) -> list[Part]:
    """Time each kernel of steps from the present states, the most expensive first. The worlds are stepped.

    Args:
        engine: a prepared engine on the backend "host".
        problem: what it was prepared with.
        steps: number of steps.
    """
    lists: Any = engine.simulation._engine
    store, controls = lists.stores[0], np.ascontiguousarray(problem.controls, engine.dtype)
    programs = [emitter.whole_step(_NOTHING) for emitter in lists.emitters[0]]
    spent: dict[str, float] = {}
    for step in range(steps):
        store.array("ctrl")[...] = controls[step % len(controls)]
        for whole in programs:
            names = {at: work.call.call.name for at, work in whole.works}
            for at, seconds in whole.program.timed():
                spent[names[at]] = spent.get(names[at], 0.0) + seconds
    scale = 1e6 / steps / problem.worlds
    parts = (Part(name, scale * seconds) for name, seconds in spent.items())
    return sorted(parts, key=lambda part: -part.microseconds)


def executor_time(engine: Simengine, problem: Problem, steps: int) -> float:
    """Cores times the time of a step of one world by the engine's own executor [us]. The worlds are stepped."""
    engine.step(steps)
    return 1e6 * usable_processors() * engine.step(steps) / steps / problem.worlds


def mujoco_times(problem: Problem, state: State, steps: int) -> Iterator[Part]:
    """Time the parts of MuJoCo's step in some of the worlds, from the given states."""
    mj, data = problem.mj, mujoco.MjData(problem.mj)
    spent, worlds = dict.fromkeys(_TIMERS, 0.0), np.unique(np.linspace(0, problem.worlds - 1, _SAMPLED).astype(int))
    mujoco.set_mjcb_time(lambda: 1e6 * perf_counter())
    try:
        for world in worlds:
            load(data, problem, state, int(world))
            for step in range(steps):
                data.ctrl = problem.controls[step % len(problem.controls), world]
                mujoco.mj_step(mj, data)
            for name, timer in _TIMERS.items():
                spent[name] += float(data.timer[timer].duration)
    finally:
        mujoco.set_mjcb_time(None)
    for name, microseconds in spent.items():
        yield Part(name, microseconds / steps / len(worlds))


def _table(title: str, parts: Sequence[Part], after: Sequence[Part] = ()) -> Table:
    total = sum(part.microseconds for part in parts)
    table = Table("part", "us", "share", title=title, title_justify="left")
    small = sum(part.microseconds for part in parts if part.microseconds < _LEAST_SHARE * total)
    large = [part for part in parts if part.microseconds >= _LEAST_SHARE * total]
    for part in (*large, *((Part("others", small),) if small else ()), Part("sum", total), *after):
        table.add_row(part.name, f"{part.microseconds:.3f}", f"{100 * part.microseconds / total:.1f} %")
    return table


def main() -> None:
    """Run the program."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.host_profile", description=__doc__)
    parser.add_argument("models", nargs="+", metavar="MODEL", help="names as of `simengine bench peers`")
    parser.add_argument("--worlds", nargs="+", type=int, default=[64, 1024], help="batch sizes")
    parser.add_argument("--steps", type=int, default=30, help="steps that are timed")
    parser.add_argument("--warmup", type=int, default=100, help="steps before them")
    parser.add_argument("--seed", type=int, default=0, help="seed of states and controls")
    parser.add_argument("--mujoco", action="store_true", help="time the parts of MuJoCo's step, too")
    args = parser.parse_args()
    console, (models, _) = Console(), chosen_models(args.models, (), None)
    for model in models:
        for worlds in args.worlds:
            problem = make_problem(model, worlds, args.seed)
            engine = Simengine("cpu", "float32", "host")
            engine.prepare(problem)
            engine.step(args.warmup)
            state = engine.state()
            executor = Part("cores x time by the executor", executor_time(engine, problem, args.steps))
            engine.set_state(state)
            engine.step(1)  # so that solvers start warm
            parts = kernel_times(engine, problem, args.steps)
            console.print(_table(f"{model.name}, {worlds} worlds", parts, (executor,)))
            if args.mujoco:
                console.print(_table(f"{model.name}, MuJoCo's C", list(mujoco_times(problem, state, args.steps))))
            engine.close()


if __name__ == "__main__":
    main()
