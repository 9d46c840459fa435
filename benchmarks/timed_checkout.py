"""Times one checkout of simengine. `benchmarks.paired` runs this file as a separate program.

It uses only public names that every compared checkout has. It prints a JSON object with the duration of a step [us].
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

FOLDERS = ("envs", "scheduler", "training", "configs")
CONTROL_SETS = 10


def import_folders(checkout: Path) -> list[str]:
    """First entries for `sys.path`: the checkout, and its folders that hold packages but are not packages."""
    folders = [checkout / name for name in FOLDERS]
    return [str(checkout), *(str(f) for f in folders if f.is_dir() and not (f / "__init__.py").exists())]


def engine_of(checkout: Path) -> Any:
    """Import the module `simengine` of a checkout.

    Raises:
        ImportError: Python finds another one.
    """
    sys.path[:0] = import_folders(checkout)
    import simengine

    if checkout not in Path(str(simengine.__file__)).resolve().parents:
        raise ImportError(f"{checkout} holds no package simengine; give the root of a checkout")
    return simengine


def compiled(name: str) -> Any:
    """Compile one of Gymnasium's models, with Newton like in the other benchmarks."""
    import gymnasium
    import mujoco

    assets = Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets"
    mj = mujoco.MjModel.from_xml_path(str(assets / f"{name}.xml"))
    mj.opt.solver = mujoco.mjtSolver.mjSOL_NEWTON
    return mj


def prepared(simengine: Any, args: argparse.Namespace) -> tuple[Any, Any]:
    """A simulation of all models in scattered states, and ten random control sets (10, worlds, nu) for each model."""
    import numpy as np

    models = [compiled(name) for name in args.model]
    sim = simengine.Simulation([(mj, args.worlds) for mj in models], backend=args.backend, dtype=args.dtype)
    rng, controls = np.random.default_rng(1), []
    for group, mj in zip(sim.groups, models, strict=True):
        qpos = mj.qpos0 + rng.uniform(-0.02, 0.02, (args.worlds, mj.nq))
        group.set_state(qpos=qpos, qvel=rng.uniform(-0.1, 0.1, (args.worlds, mj.nv)))
        low, high = mj.actuator_ctrlrange.T
        sets = rng.uniform(low, high, (CONTROL_SETS, args.worlds, mj.nu)).astype(args.dtype)
        if args.backend == "cuda":
            import cupy

            sets = cupy.asarray(sets)
        controls.append(sets)
    return sim, controls if len(controls) > 1 else controls[0]


def us_per_step(sim: Any, controls: Any, args: argparse.Namespace) -> float:
    """Mean duration of a step [us], after steps that are not timed."""

    def finish() -> None:
        if args.backend == "cuda":
            import cupy

            cupy.cuda.Device().synchronize()

    for _ in range(args.warmup // CONTROL_SETS):
        sim.step(CONTROL_SETS, ctrl=controls)
    finish()
    rounds = max(1, args.steps // CONTROL_SETS)
    begin = time.perf_counter()
    for _ in range(rounds):
        sim.step(CONTROL_SETS, ctrl=controls)
    finish()
    return 1e6 * (time.perf_counter() - begin) / (rounds * CONTROL_SETS)


def main() -> int:
    """Time the checkout, and print the duration of a step."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkout", type=Path, required=True, help="root of the checkout")
    parser.add_argument("--model", nargs="+", required=True, help="names of Gymnasium's MJCF files")
    parser.add_argument("--worlds", type=int, required=True, help="worlds of each model")
    parser.add_argument("--backend", required=True)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--warmup", type=int, default=50, help="steps before those that are timed")
    parser.add_argument("--steps", type=int, required=True, help="timed steps")
    args = parser.parse_args()
    try:
        simengine = engine_of(args.checkout.resolve())
    except ImportError as error:
        print(error, file=sys.stderr)
        return 1
    sim, controls = prepared(simengine, args)
    print(json.dumps({"us_per_step": us_per_step(sim, controls, args)}))
    sim.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
