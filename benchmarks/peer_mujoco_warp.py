"""Speed of MuJoCo Warp on the problem of `benchmarks.stepping`: same model file, integrator, solver and controls.

`python -m benchmarks.peer_mujoco_warp --worlds 64 --json out.json` runs a CUDA graph of ten steps, or of `--steps` if
that is less, like users of MuJoCo Warp do. Each step has its own control set. States and controls come from the same
generators as simengine's. The program also gives the largest error of `qacc` against MuJoCo C over 64 worlds, or over
one world if all start from the same state. A run that overflows its contact or constraint buffers is an error.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from datetime import date
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from benchmarks.models import compiled, short
from benchmarks.piles import settled
from benchmarks.stepping import CONTROL_SETS, hardware
from simengine.cli.results.result_file import write_json


def first_states(model: str, mj: mujoco.MjModel, worlds: int, settle: int) -> tuple[np.ndarray, np.ndarray]:
    """The scattered first states of `benchmarks.stepping`, or the states at rest of `benchmarks.piles`."""
    if settle:
        _, kind, bodies = model.split(":")
        state = settled(int(bodies), kind, settle).state
        qpos, qvel = (np.tile(state[name].astype(np.float32), (worlds, 1)) for name in ("qpos", "qvel"))
        return qpos, qvel
    rng = np.random.default_rng(2)
    qpos = mj.qpos0 + rng.uniform(-0.02, 0.02, (worlds, mj.nq))
    return qpos.astype(np.float32), rng.uniform(-0.1, 0.1, (worlds, mj.nv)).astype(np.float32)


def controls(mj: mujoco.MjModel, worlds: int) -> list[np.ndarray]:
    """The control sets of `benchmarks.stepping`."""
    rng = np.random.default_rng(1)
    limited = mj.actuator_ctrllimited.astype(bool)
    low = np.where(limited, mj.actuator_ctrlrange[:, 0], -1.0)
    high = np.where(limited, mj.actuator_ctrlrange[:, 1], 1.0)
    return [rng.uniform(low, high, (worlds, mj.nu)).astype(np.float32) for _ in range(CONTROL_SETS)]


def qacc_error(
    mj: mujoco.MjModel, qpos: np.ndarray, qvel: np.ndarray, ctrl: np.ndarray, qacc: np.ndarray, most: int
) -> float:
    """Largest relative error of `qacc` against MuJoCo C, over at most `most` worlds."""
    data = mujoco.MjData(mj)
    worst = 0.0
    for world in np.linspace(0, len(qpos) - 1, min(most, len(qpos))).astype(int):
        data.qpos[:], data.qvel[:], data.ctrl[:] = qpos[world], qvel[world], ctrl[world]
        data.qacc_warmstart[:] = 0
        mujoco.mj_forward(mj, data)
        worst = max(worst, float(np.abs(qacc[world] - data.qacc).max() / max(1.0, np.abs(data.qacc).max())))
    return worst


def run_case(model: str, worlds: int, args: argparse.Namespace) -> dict[str, Any]:
    """Measure one case, and return a row of results.

    Raises:
        RuntimeError: a buffer overflowed, or a state is not finite.
    """
    import mujoco_warp as mjw
    import warp as wp

    mj = compiled(model)
    begin = time.perf_counter()
    m = mjw.put_model(mj)
    d = mjw.make_data(mj, nworld=worlds, nconmax=args.nconmax, njmax=args.njmax)
    qpos, qvel = first_states(model, mj, worlds, args.settle)
    d.qpos.assign(qpos)
    d.qvel.assign(qvel)
    sets: list[Any] = [wp.array(c, dtype=float) for c in controls(mj, worlds)[: args.steps]]
    mjw.step(m, d)
    wp.synchronize()
    first = time.perf_counter() - begin
    with wp.ScopedCapture() as capture:
        for ctrl in sets:
            if mj.nu:
                wp.copy(d.ctrl, ctrl)
            mjw.step(m, d)
    for _ in range(args.warmup // len(sets)):
        wp.capture_launch(capture.graph)
    wp.synchronize()
    begin = time.perf_counter()
    for _ in range(args.steps // len(sets)):
        wp.capture_launch(capture.graph)
    wp.synchronize()
    seconds = time.perf_counter() - begin
    steps = args.steps // len(sets) * len(sets)
    rows = int(d.nefc.numpy().max())
    contacts = int(d.nacon.numpy()[0])
    if rows >= args.njmax or contacts >= worlds * args.nconmax:
        raise RuntimeError(
            f"{short(model)} with {worlds} worlds overflowed: {rows} rows in a world, {contacts} contacts in all"
        )
    mjw.forward(m, d)
    state = (d.qpos.numpy(), d.qvel.numpy(), d.ctrl.numpy(), d.qacc.numpy())
    if not np.isfinite(state[0]).all():
        raise RuntimeError(f"{short(model)} with {worlds} worlds went non-finite")
    return {
        "model": short(model),
        "worlds": worlds,
        "backend": "cuda",
        "executor": "MuJoCo Warp",
        "steps_per_s": round(worlds * steps / seconds),
        "us_per_step": round(1e6 * seconds / steps, 1),
        "contacts_per_world": round(contacts / worlds, 3),
        "first_step_s": round(first, 2),
        "qacc_error": float(f"{qacc_error(mj, *state, 1 if args.settle else 64):.2e}"),
    }


def attempted(model: str, worlds: int, args: argparse.Namespace) -> dict[str, Any]:
    """The same, or a row with the reason of a failure, since a lack of memory is a result, too."""
    try:
        return run_case(model, worlds, args)
    except RuntimeError as error:
        return {"model": short(model), "worlds": worlds, "executor": "MuJoCo Warp", "error": str(error)}


def document(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The contents of a result file: the rows, the hardware and the versions."""
    import mujoco_warp
    import warp

    versions = {
        "mujoco": mujoco.__version__,
        "mujoco_warp": mujoco_warp.__version__,
        "warp": warp.__version__,
        "python": platform.python_version(),
    }
    return {
        "hardware": hardware(),
        "versions": versions,
        "date": date.today().isoformat(),
        "command": "python -m benchmarks.peer_mujoco_warp " + " ".join(sys.argv[1:]),
        "rows": rows,
    }


def main() -> int:
    """Run the cases, and print and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", nargs="+", default=["ant"])
    parser.add_argument("--worlds", nargs="+", type=int, default=[64, 512, 4096, 8192, 32768])
    parser.add_argument("--nconmax", type=int, default=32, help="contacts a world to allocate")
    parser.add_argument("--njmax", type=int, default=160, help="constraint rows a world to allocate")
    parser.add_argument("--warmup", type=int, default=200)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--settle", type=int, default=0, help="steps that MuJoCo lets piles fall, as benchmarks.piles")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    rows = []
    for model in args.model:
        for worlds in args.worlds:
            rows.append(attempted(model, worlds, args))
            print(json.dumps(rows[-1]), flush=True)
            write_json(document(rows), args.json)  # after each case, so that a later failure loses nothing
    return 0


if __name__ == "__main__":
    sys.exit(main())
