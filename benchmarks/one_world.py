"""A step of one world through `Simulation`, beside `mj_step`: `python -m benchmarks.one_world --json FILE`.

Both make one step a call, with new controls in each, as a loop in Python does. simengine steps a batch of one world on
backend host, in float32. MuJoCo's C steps in float64. Both start from the same state, which MuJoCo has reached under
random controls, and take turns. Times are wall-clock microseconds a step.
"""

from __future__ import annotations

import argparse
import shlex
import statistics
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import mujoco
import numpy as np

from simengine import Model, Simulation
from simengine.cli.bench.peers.models import SETS, chosen_models
from simengine.cli.results.machine import result_header
from simengine.cli.results.result_file import write_json

Row = dict[str, Any]


def random_controls(mj: mujoco.MjModel, steps: int) -> np.ndarray:
    """Controls of each step, within their ranges."""
    low, high = np.where(mj.actuator_ctrllimited[:, None].astype(bool), mj.actuator_ctrlrange, (-1.0, 1.0)).T
    return np.random.default_rng(0).uniform(low, high, (steps, mj.nu))


def mean_us(step: Callable[[np.ndarray], object], controls: np.ndarray) -> float:
    """Microseconds a step."""
    began = perf_counter()
    for each in controls:
        step(each)
    return 1e6 * (perf_counter() - began) / len(controls)


def measure(name: str, mj: mujoco.MjModel, steps: int, repeats: int, warmup: int) -> Row:
    """Time one model; both engines repeat the same steps."""
    controls = random_controls(mj, warmup + steps)
    data, start = mujoco.MjData(mj), mujoco.MjData(mj)

    def of_mujoco(ctrl: np.ndarray) -> None:
        data.ctrl[:] = ctrl
        mujoco.mj_step(mj, data)

    mean_us(of_mujoco, controls[:warmup])
    mujoco.mj_copyData(start, mj, data)
    times: dict[str, list[float]] = {"us_per_step": [], "mj_step_us": []}
    with Simulation(Model(mj), num_worlds=1, backend="host") as sim:
        given = controls[warmup:].astype(np.float32)[:, None]
        for repeat in range(repeats + 1):
            sim.set_state(**{field: getattr(start, field)[None] for field in ("qpos", "qvel", "act")})
            mujoco.mj_copyData(data, mj, start)
            ours, theirs = mean_us(lambda ctrl: sim.step(ctrl=ctrl), given), mean_us(of_mujoco, controls[warmup:])
            if repeat:  # in the first, kernels are loaded, and an executor is chosen
                times["us_per_step"].append(round(ours, 2))
                times["mj_step_us"].append(round(theirs, 2))
        medians = {key: statistics.median(values) for key, values in times.items()}
        return {
            "model": name,
            "executor": sim.schedule.executor,
            "steps": steps,
            "repeats": repeats,
            **medians,
            "ratio": round(medians["us_per_step"] / medians["mj_step_us"], 2),
            **{f"all_{key}": values for key, values in times.items()},
        }


def main(arguments: Sequence[str] | None = None) -> int:
    """Time models in turn."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL", help="as of simengine bench peers; default: Gymnasium's")
    parser.add_argument("--steps", type=int, default=2000, help="steps of a repeat")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--warmup", type=int, default=100, help="steps of MuJoCo to where both start")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    command = shlex.join(["python", "-m", "benchmarks.one_world", *(sys.argv[1:] if arguments is None else arguments)])
    chosen, _ = chosen_models(options.models or SETS["gymnasium"], [], None)
    rows: list[Row] = []
    for model in chosen:
        rows.append(measure(model.name, model.mj, options.steps, options.repeats, options.warmup))
        print({key: value for key, value in rows[-1].items() if not key.startswith("all_")}, flush=True)
        write_json({"benchmark": "one_world", **result_header(command), "rows": rows}, options.json)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
