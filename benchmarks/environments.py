"""Speeds of environments: `python -m benchmarks.environments --backend cuda --worlds 4096 --json FILE`.

`--task Ant HalfCheetah simengine/QuadrupedFlat-v0` chooses environments: by their ids, or by the short names of
Gymnasium's tasks.

For each task and number of worlds it measures

    step      a step of the pure environment inside `lax.scan`, under random actions; observations, rewards and all else
              that it reports are computed in every step
    physics   the bare steps of the engine on the states of these environments, with the fields that the task reads
    array     a step of the vector environment from Python, by kind of arrays

The bare steps are the difference between a loop whose steps make the physics twice, on the same states, and the loop
itself. All times are medians over repeats [ms a step of all worlds]. The two loops take turns, and each turn gives a
share of the bare steps that a step takes beyond them, whose quartiles are given. On backend "host" calls of bare steps
have a clock of their own, so that a turn takes them from that clock, as the difference of the two loops, and a whole
step from the wall's. On a CPU that has other work, `--clock processor` times the processor instead of the wall, and the
difference of two loops. On c idle cores the share beyond the physics is then up to c times as large where XLA computes
it, since the physics has all cores and the rest often one.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

import simengine
from benchmarks.stepping import document
from simengine.cli.results.result_file import write_json
from simengine.xla.host_calls import calls_exist
from simengine.xla.host_memory import time_of_steps
from simengine_envs import PureEnv
from simengine_envs.mixed_task import MixedTask
from simengine_envs.options import split_arguments, task_class
from simengine_envs.registration import check_name

_SETS = 32  # random actions of all worlds, which loops from Python repeat
TASKS = ("Ant", "HalfCheetah", "Hopper", "Walker2d", "Humanoid", "InvertedPendulum")


CLOCKS = {"wall": perf_counter, "processor": process_time}


def times_of(
    runs: dict[str, Callable[[], Any]], steps: int, repeats: int, clock: Callable[[], float] = perf_counter
) -> dict[str, list[float]]:
    """Times of functions that make `steps` steps, in every repeat [ms a step]. The functions take turns."""
    found: dict[str, list[float]] = {name: [] for name in runs}
    for run in runs.values():
        jax.block_until_ready(run())
    for _ in range(repeats):
        for name, run in runs.items():
            began = clock()
            jax.block_until_ready(run())
            found[name].append((clock() - began) / steps * 1e3)
    return found


def times_by_calls(runs: dict[str, Callable[[], Any]], steps: int, repeats: int) -> tuple[list[float], list[float]]:
    """Times of the loop "step" on backend "host", and those of bare steps in the loop "twice" [ms a step].

    The clock of bare steps also has those of environments that make theirs in a call of their own, in both loops.
    """
    walls, calls = list[float](), list[float]()
    for _ in range(repeats + 1):  # the first one warms up
        clocks = [time_of_steps()]
        began = perf_counter()
        jax.block_until_ready(runs["step"]())
        walls.append((perf_counter() - began) / steps * 1e3)
        clocks.append(time_of_steps())
        jax.block_until_ready(runs["twice"]())
        clocks.append(time_of_steps())
        calls.append((clocks[2] - 2 * clocks[1] + clocks[0]) / steps * 1e3)
    return walls[1:], calls[1:]


def loops(env: PureEnv, worlds: int, steps: int) -> dict[str, Callable[[], Any]]:
    """Compiled loops of steps from states in the middle of episodes: of the environment, and with the physics twice."""
    task = env.task
    bare = simengine.make_step(env.model, backend=env.backend, steps=task.frame_skip, keep=task.derived)
    low, high = (np.clip(bound, -1, 1) for bound in env.action_range())

    def actions(seed: int, number: int) -> jax.Array:
        return jax.random.uniform(jax.random.key(seed), (number, worlds, len(low)), minval=low, maxval=high)

    def once(carry: Any, action: jax.Array) -> Any:
        return env.step(carry[0], action), 0.0

    def twice(carry: Any, action: jax.Array) -> Any:
        state, after = carry[0], env.step(carry[0], action)
        made = bare(state.worlds, jnp.full((worlds, env.model.nu), 0.1), state.params or None)
        worlds_after, fields = made if task.derived else (made, {})
        return after, sum((x[0].ravel()[0] for x in fields.values()), worlds_after.qpos[0, 0])

    given = actions(1, steps)
    first = jax.jit(env.reset, static_argnums=1)(0, worlds)[0]
    second = jax.jit(env.step)(first, given[0])
    started = jax.jit(lambda c, a: jax.lax.scan(once, c, a)[0])(second, actions(0, 150))

    def timed(body: Any) -> Callable[[], Any]:
        compiled = jax.jit(lambda s, a: jax.lax.scan(body, s, a))
        return lambda: compiled(started, given)

    return {"step": timed(once), "twice": timed(twice)}


def stepped(name: str, worlds: int, backend: str, kind: str, steps: int) -> Callable[[], Any]:
    """A loop of steps of the vector environment from Python."""
    env: Any = gymnasium.make_vec(name, num_envs=worlds, backend=backend, array=kind)
    env.reset(seed=0)
    space = env.single_action_space
    low, high = (np.clip(bound, -1, 1) for bound in (space.low, space.high))
    host = np.random.default_rng(0).uniform(low, high, (_SETS, worlds, *space.shape)).astype(np.float32)
    actions = [_of_kind(own, kind, env) for own in host]
    for k in range(150):
        env.step(actions[k % _SETS])

    def run() -> Any:
        for k in range(steps):
            env.step(actions[k % _SETS])
        return env.state.worlds.qpos

    return run


def _of_kind(action: np.ndarray, kind: str, env: Any) -> Any:
    """An action as an array of a library, on the environment's device."""
    if kind == "torch":
        import torch

        return torch.as_tensor(action, device="cuda" if env.runner.backend == "cuda" else "cpu")
    return jax.device_put(action, env.runner.device) if kind == "jax" else action


def full_id(name: str) -> str:
    """The id of an environment that is named by it or by a short name.

    Raises:
        ValueError: there is no such environment, or its worlds have several models.
    """
    full = name if "/" in name else f"simengine/{name}" if "-v" in name else f"simengine/{name}-v5"
    check_name(full)
    if issubclass(task_class(gymnasium.spec(full).kwargs["task"]), MixedTask):
        raise ValueError(f"worlds of {full} have several models; name environments of one robot")
    return full


def row(full: str, worlds: int, options: argparse.Namespace) -> dict[str, Any]:
    """The measurements of one environment with one number of worlds."""
    spec = gymnasium.spec(full)
    arguments = dict(spec.kwargs)
    task, *_ = split_arguments(arguments.pop("task"), arguments)
    env = PureEnv(task, options.backend, max_episode_steps=spec.max_episode_steps)
    runs = loops(env, worlds, options.steps)
    by_calls = env.backend == "host" and options.clock == "wall" and calls_exist()
    from_python = {f"array {kind}": stepped(full, worlds, env.backend, kind, options.steps) for kind in options.array}
    times = times_of(
        from_python if by_calls else runs | from_python, options.steps, options.repeats, CLOCKS[options.clock]
    )
    if by_calls:
        times["step"], bare = times_by_calls(runs, options.steps, options.repeats)
        physics = statistics.median(bare)
    else:
        bare = [twice - step for step, twice in zip(times["step"], times["twice"], strict=True)]
        physics = statistics.median(times["twice"]) - statistics.median(times["step"])
    found = {name: statistics.median(values) for name, values in times.items()}
    shares = [step / own - 1 for step, own in zip(times["step"], bare, strict=True)]
    result: dict[str, Any] = {
        "task": full,
        "worlds": worlds,
        "frame_skip": task.frame_skip,
        "step_ms": round(found["step"], 4),
        "physics_ms": round(physics, 4),
        "beyond_physics_ms": round(found["step"] - physics, 4),
        "share_beyond_physics": [round(float(share), 3) for share in np.quantile(shares, (0.25, 0.5, 0.75))],
    }
    if options.clock == "wall":
        result["env_steps_per_s"] = round(worlds / found["step"] * 1e3)
    return result | {f"{kind}_ms": round(found[f"array {kind}"], 4) for kind in options.array}


def main() -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", default="auto")
    parser.add_argument("--task", nargs="+", default=list(TASKS), help="ids, or short names of Gymnasium's tasks")
    parser.add_argument("--worlds", nargs="+", type=int, default=[4096])
    parser.add_argument("--array", nargs="*", default=["numpy", "jax"], help="kinds of arrays")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--clock", choices=CLOCKS, default="wall", help="what is timed")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    try:
        cases = [(full_id(name), worlds) for name in options.task for worlds in options.worlds]
    except ValueError as error:
        parser.error(str(error))
    rows = [row(*case, options) for case in track(cases, "environments", console=Console(stderr=True))]
    table = Table(*rows[0])
    for entry in rows:
        table.add_row(*(f"{value:,}" if isinstance(value, int) else str(value) for value in entry.values()))
    Console().print(table)
    write_json(document("benchmarks.environments", rows), options.json)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
