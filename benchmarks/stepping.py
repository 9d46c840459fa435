"""Stepping speed of single models: `python -m benchmarks.stepping --worlds 64 --json out.json`.

For each model, number of worlds and executor the program measures steps/s with random controls (ten control sets in
turn). To explain the speed, a row has the number of kernels of a step, the median duration of each kernel, the time the
host takes to issue a step, the mean number of kernels that run at once, the idle share, and the numbers of contacts and
rows. It also has the largest error of `qacc` against MuJoCo C over sampled worlds, in the states that were timed.
PGS is replaced by Newton, since MuJoCo Warp has no PGS.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

import simengine
from benchmarks.models import compiled, short
from simengine.cli.results.result_file import write_json

CONTROL_SETS = 10


def steps_of_all_sets(text: str) -> int:
    """An argument that gives a number of steps in which every control set is used equally often."""
    steps = int(text)
    if steps % CONTROL_SETS or steps < 0:
        raise argparse.ArgumentTypeError(f"{steps} is not a multiple of {CONTROL_SETS}, the number of control sets")
    return steps


def timed_steps(text: str) -> int:
    """The same, with each control set at least once."""
    if steps := steps_of_all_sets(text):
        return steps
    raise argparse.ArgumentTypeError("no time can be taken of 0 steps")


def group_controls(sim: simengine.Simulation, group: simengine.Group, seed: int) -> Any:
    """Ten random control sets of a group, (10, num_worlds, nu), in the backend's memory."""
    rng = np.random.default_rng(seed)
    model = group.model
    low, high = np.full(model.nu, -1.0), np.full(model.nu, 1.0)
    limited = model.actuator_ctrllimited.astype(bool)
    low[limited], high[limited] = model.actuator_ctrlrange[limited].T
    sets = np.stack([rng.uniform(low, high, (group.num_worlds, model.nu)) for _ in range(CONTROL_SETS)])
    if sim.backend != "cuda":
        return sets.astype(sim.dtype)
    import cupy

    return cupy.asarray(sets.astype(sim.dtype))


def scatter_group(group: simengine.Group, seed: int) -> None:
    """Set the states of a group's worlds to the reference state with small random differences."""
    rng = np.random.default_rng(seed)
    model = group.model
    qpos = model.qpos0 + rng.uniform(-0.02, 0.02, (group.num_worlds, model.nq))
    group.set_state(qpos=qpos, qvel=rng.uniform(-0.1, 0.1, (group.num_worlds, model.nv)))


def group_error(group: simengine.Group, samples: int) -> float:
    """Largest relative error of `qacc` against MuJoCo C over sampled worlds of a group. `forward` must come before."""
    mj = group.model.mj
    qpos, qvel, ctrl, qacc = (group.to_host(group.field(n)) for n in ("qpos", "qvel", "ctrl", "qacc"))
    data = mujoco.MjData(mj)
    worst = 0.0
    for world in np.linspace(0, group.num_worlds - 1, min(samples, group.num_worlds)).astype(int):
        data.qpos[:], data.qvel[:], data.ctrl[:] = qpos[world], qvel[world], ctrl[world]
        data.qacc_warmstart[:] = 0
        mujoco.mj_forward(mj, data)
        worst = max(worst, float(np.abs(qacc[world] - data.qacc).max() / max(1.0, np.abs(data.qacc).max())))
    return worst


def kernel_times(sim: simengine.Simulation, traces: int) -> dict[str, Any]:
    """Durations by kernel name, mean number of kernels that run at once, and idle share, from recorded steps."""
    durations = defaultdict(list)
    concurrency, idle = [], []
    for _ in range(traces):
        trace = sim.schedule.trace_step()
        for event in trace.events:
            durations[event.name].append(1e6 * (event.end - event.start))
        concurrency.append(trace.concurrency())
        idle.append(trace.idle_share())
    return {
        "kernel_us": {name: round(statistics.median(values), 2) for name, values in sorted(durations.items())},
        "concurrency": round(statistics.median(concurrency), 3),
        "idle_share": round(statistics.median(idle), 3),
    }


def measure(sim: simengine.Simulation, warmup: int, steps: int) -> dict[str, Any]:
    """Steps/s, and the time the host takes to issue a step."""
    controls = group_controls(sim, sim.groups[0], 1)
    scatter_group(sim.groups[0], 2)
    for _ in range(warmup // CONTROL_SETS):
        sim.step(CONTROL_SETS, ctrl=controls)
    sim.synchronize()
    kernels = []
    rounds = steps // CONTROL_SETS
    steps = rounds * CONTROL_SETS
    begin = time.perf_counter()
    for _ in range(rounds):
        sim.step(CONTROL_SETS, ctrl=controls)
        kernels.append(len(sim.schedule.kernel_list))
    issued = time.perf_counter()
    sim.synchronize()
    seconds = time.perf_counter() - begin
    counts = sim.schedule.counts()
    return {
        "steps_per_s": round(sim.num_worlds * steps / seconds),
        "us_per_step": round(1e6 * seconds / steps, 1),
        "host_us_per_step": round(1e6 * (issued - begin) / steps, 1),
        "kernels_per_step": round(statistics.mean(kernels), 1),
        "contacts_per_world": round(counts["ncon"] / sim.num_worlds, 3),
        "rows_per_world": round(counts["nefc"] / sim.num_worlds, 3),
    }


def run_case(
    model: str, worlds: int, backend: str, executor: str, args: argparse.Namespace, on_nonfinite: str = "raise"
) -> dict[str, Any]:
    """Measure one case, and return a row of results."""
    loaded = simengine.load_model(compiled(model))
    begin = time.perf_counter()
    choices: dict[str, Any] = {"backend": backend, "executor": executor, "dtype": args.dtype, "shards": args.shards}
    sim = simengine.Simulation(loaded, worlds, on_nonfinite=on_nonfinite, **choices)
    sim.step()
    sim.synchronize()
    first = time.perf_counter() - begin
    sim.reset()
    row: dict[str, Any] = {"model": short(model), "worlds": worlds, "backend": sim.backend}
    row |= {"executor": sim.schedule.executor, "emission": sim.schedule.emission}
    row.update(measure(sim, args.warmup, args.steps))
    row["first_step_s"] = round(first, 2)
    row["shards"] = sim.groups[0].num_shards
    if on_nonfinite == "reset":
        row["resets"] = sum(sim.warnings().values())
    sim.forward()
    row["qacc_error"] = float(f"{group_error(sim.groups[0], 64):.2e}")
    if sim.backend != "jax" and args.traces:
        row.update(kernel_times(sim, args.traces))
    row["bytes_per_world"] = sim.nbytes() // worlds
    sim.close()
    return row


def attempted(model: str, worlds: int, backend: str, executor: str, args: argparse.Namespace) -> dict[str, Any]:
    """The same. Where a world blows up, the case runs again with resets of such worlds, which MuJoCo makes, too.

    The row then has the number of resets, and whether MuJoCo resets the first of these worlds.
    """
    case = (model, worlds, backend, executor, args)
    try:
        return run_case(*case)
    except simengine.NonFiniteError as error:
        steps = args.warmup + args.steps
        return run_case(*case, on_nonfinite="reset") | {
            "first_reset": error.found,
            "mujoco_resets_it": mujoco_resets(compiled(model), worlds, error.worlds[0], steps),
        }


def mujoco_resets(mj: mujoco.MjModel, worlds: int, world: int, steps: int) -> bool:
    """Whether MuJoCo, in float64, finds the world unstable in as many steps from the measured start, and resets it."""
    with simengine.Simulation(simengine.load_model(mj), worlds, backend="host", dtype="float64") as sim:
        (group,) = sim.groups
        scatter_group(group, 2)
        data = mujoco.MjData(mj)
        data.qpos[:], data.qvel[:] = group.qpos[world], group.qvel[world]
        controls = group_controls(sim, group, 1)[:, world]
    unstable = [mujoco.mjtWarning.mjWARN_BADQPOS, mujoco.mjtWarning.mjWARN_BADQVEL, mujoco.mjtWarning.mjWARN_BADQACC]
    for step in range(steps):
        data.ctrl[:] = controls[step % CONTROL_SETS]
        mujoco.mj_step(mj, data)
        if any(data.warning[kind].number for kind in unstable):
            return True
    return False


def peer_rows(path: Path) -> dict[tuple[str, int], dict[str, Any]]:
    """Columns for each (model, worlds) from the result file of a peer."""
    names = {"executor": "peer", "steps_per_s": "peer_steps_per_s", "qacc_error": "peer_qacc_error"}
    rows = [row for row in json.loads(path.read_text())["rows"] if "error" not in row]
    return {(row["model"], row["worlds"]): {new: row[old] for old, new in names.items()} for row in rows}


def hardware() -> dict[str, Any]:
    """The CPU and the GPU of this machine."""
    info: dict[str, Any] = {"machine": platform.machine(), "cpu": platform.processor() or platform.machine()}
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        info["cpu"] = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    try:
        import cupy

        info["gpu"] = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
        info["cuda_driver"] = cupy.cuda.runtime.driverGetVersion()
    except Exception:  # without CuPy or a GPU, the figures are those of the CPU
        pass
    return info


def package_versions() -> dict[str, str]:
    """Versions of the optional packages that are installed."""
    found = {}
    for name in ("cupy-cuda13x", "cupy-cuda12x", "jax"):
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def document(module: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The contents of a result file: the rows, the hardware and the versions."""
    versions = {
        **package_versions(),
        "simengine": simengine.__version__,
        "mujoco": mujoco.__version__,
        "python": platform.python_version(),
    }
    return {
        "hardware": hardware(),
        "versions": versions,
        "date": date.today().isoformat(),
        "command": f"python -m {module} " + " ".join(sys.argv[1:]),
        "rows": rows,
    }


def print_and_write(module: str, doc: str | None, measured: Callable[[], list[dict[str, Any]]]) -> int:
    """Carry out a program that measures rows, prints each and writes all: `python -m MODULE --json FILE`.

    Returns:
        The exit code.
    """
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    rows = measured()
    for row in rows:
        print(row)
    write_json(document(module, rows), args.json)
    return 0


def main() -> int:
    """Run the cases, and print and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", nargs="+", default=["ant"])
    parser.add_argument("--worlds", nargs="+", type=int, default=[64, 512, 4096, 8192, 32768])
    parser.add_argument("--backend", default="auto")
    parser.add_argument("--executor", nargs="+", default=["auto"])
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--shards", type=int)
    parser.add_argument("--warmup", type=steps_of_all_sets, default=200)
    parser.add_argument("--steps", type=timed_steps, default=500)
    parser.add_argument("--traces", type=int, default=5)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--peer-json", type=Path, help="results of a peer on this machine, taken in the same run")
    args = parser.parse_args()
    rows = []
    peers = peer_rows(args.peer_json) if args.peer_json else {}
    for model in args.model:
        for worlds in args.worlds:
            for executor in args.executor:
                row = attempted(model, worlds, args.backend, executor, args)
                row.update(peers.get((short(model), worlds), {}))
                if "peer_steps_per_s" in row and "error" not in row:
                    row["ratio"] = round(row["steps_per_s"] / row["peer_steps_per_s"], 2)
                rows.append(row)
                print(json.dumps(row), flush=True)
    write_json(document("benchmarks.stepping", rows), args.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
