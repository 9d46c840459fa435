"""Where the time of a training's iteration goes: `python -m benchmarks.training ant --json FILE`.

For each preset, number of environments and number of devices it measures

    compile      seconds until the training's programs are compiled, without those that a cache had
    iteration    a rollout, its advantages and the epochs over it, as one program, as a training runs it
    rollout      the rollout by itself
    update       advantages and epochs by themselves
    evaluation   an evaluation [s]

Rollout and update are measured on one device alone. Times are medians over repeats [ms], after iterations that bring
worlds into the middle of their episodes. Samples are environment steps.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

import jax
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.stepping import document
from simengine.cli.results.result_file import write_json
from simengine_configs import load_preset, preset_names
from simengine_training import Arguments
from simengine_training.iteration import TrainState
from simengine_training.ppo import samples_of, updated
from simengine_training.programs import Programs
from simengine_training.rollout import collect


def median_ms(run: Callable[[], Any], repeats: int) -> float:
    """Median time of a function, after one call that does not count [ms]."""
    jax.block_until_ready(run())
    found = []
    for _ in range(repeats):
        began = perf_counter()
        jax.block_until_ready(run())
        found.append((perf_counter() - began) * 1e3)
    return statistics.median(found)


def parts(programs: Programs, state: TrainState, repeats: int) -> dict[str, float]:
    """Times of the rollout and of the update by themselves [ms]."""
    arguments, network = programs.arguments, programs.network

    def roll(learner: Any, worlds: Any) -> Any:
        return collect(
            programs.env, network, learner.params, learner.observations, worlds, jax.random.key(0),
            arguments.rollout_steps, arguments.gamma, arguments.spread_starts,
        )  # fmt: skip

    def update(learner: Any, rollout: Any) -> Any:
        samples = samples_of(rollout, learner, network, arguments, None)
        return updated(learner, samples, jax.random.key(1), network, arguments, None)

    with programs.scope():
        rolling, updating = jax.jit(roll), jax.jit(update)
        rollout = rolling(state.learner, state.worlds)[1]
        return {
            "rollout_ms": round(median_ms(lambda: rolling(state.learner, state.worlds), repeats), 2),
            "update_ms": round(median_ms(lambda: updating(state.learner, rollout), repeats), 2),
        }


def row(preset: str, arguments: Arguments, steps: int, repeats: int) -> dict[str, Any]:
    """The measurements of one training."""
    began = perf_counter()
    programs = Programs(arguments)
    state = programs.first_state()
    state, _ = programs.iterate(state)
    jax.block_until_ready(state)
    compiled = perf_counter() - began

    def iterate() -> TrainState:
        nonlocal state
        state, _ = programs.iterate(state)
        return state

    for _ in range(max(1, steps // arguments.rollout_steps)):
        iterate()
    iteration = median_ms(iterate, repeats)
    programs.evaluate(state)
    began = perf_counter()
    programs.evaluate(state)
    result = {
        "preset": preset,
        "num_envs": arguments.num_envs,
        "devices": arguments.devices,
        "batch_size": arguments.batch_size,
        "compile_s": round(compiled, 2),
        "iteration_ms": round(iteration, 2),
        "samples_per_s": round(arguments.batch_size / iteration * 1e3),
        "evaluation_s": round(perf_counter() - began, 3),
    }
    return result | (parts(programs, state, repeats) if arguments.devices == 1 else {})


def arguments_of(preset: str, backend: str | None, changes: dict[str, Any]) -> Arguments:
    """The arguments of a preset, with changes."""
    settings = load_preset("train", preset)
    own = settings.pop("backend", "auto")
    return replace(Arguments(env_arguments={"backend": backend or own}, **settings), **changes)


def main() -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("preset", nargs="+", choices=preset_names("train"), metavar="PRESET", help="presets")
    parser.add_argument("--num-envs", type=int, nargs="+", help="environments of all devices, instead of the preset's")
    parser.add_argument("--devices", type=int, nargs="+", default=[1], help="numbers of devices")
    parser.add_argument("--of-each", action="store_true", help="--num-envs counts the environments of each device")
    parser.add_argument("--backend", help="instead of the preset's")
    parser.add_argument("--steps", type=int, default=250, help="steps of each environment before the measurement")
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    changes = [{"devices": devices} for devices in options.devices]
    if options.num_envs:
        changes = [
            {**change, "num_envs": number * (change["devices"] if options.of_each else 1)}
            for number in options.num_envs
            for change in changes
        ]
    try:
        cases = [(name, arguments_of(name, options.backend, change)) for name in options.preset for change in changes]
    except ValueError as error:
        parser.error(str(error))
    rows = [
        row(name, arguments, options.steps, options.repeats)
        for name, arguments in track(cases, "trainings", console=Console(stderr=True))
    ]
    columns = list(dict.fromkeys(name for entry in rows for name in entry))
    table = Table(*columns)
    for entry in rows:
        table.add_row(
            *(f"{entry[name]:,}" if name in entry and name != "preset" else entry.get(name, "") for name in columns)
        )
    Console().print(table)
    write_json(document("benchmarks.training", rows), options.json)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
