"""Time of a step against the number of free bodies in a world: `python -m benchmarks.clumps --bodies 10 30 100 300`.

The bodies are spheres and capsules that have come to rest in clumps of `--clump` bodies, which may be all bodies. The
program steps one world on one thread of the host backend, and with MuJoCo's C on one thread from the same states. With
`--dense` it also solves each world as one problem, whose time grows with the cube of the number of bodies.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import mujoco
import numpy as np

import simengine

SETTLE, LEAST = 200, 0.5
"""Number of steps before the measurement, and least duration of the measurement [s]."""


def clumps_xml(bodies: int, clump: int) -> str:
    """MJCF of stacks of three bodies on a floor. The stacks of each `clump` bodies are close enough to touch."""
    rng = np.random.default_rng(bodies)
    parts = []
    for i in range(bodies):
        number, place = divmod(i, clump)
        corner = 0.7 * np.ceil(np.sqrt(clump / 3)) * np.array(divmod(number, 16))
        spot = corner + 0.25 * np.array(divmod(place // 3, max(1, round(np.sqrt(clump / 3)))))
        x, y = spot + rng.uniform(-0.03, 0.03, 2)
        geom = 'type="capsule" size="0.07 0.08"' if i % 2 else 'type="sphere" size="0.12"'
        turn = f'euler="90 0 {rng.uniform(0, 180):.1f}"' if i % 2 else ""
        where = f'pos="{x:.3f} {y:.3f} {0.13 + 0.22 * (place % 3):.3f}"'
        parts.append(f"<body {where}><freejoint/><geom {geom} {turn}/></body>")
    return f"""
<mujoco model="clumps_{bodies}">
  <option timestep="0.004"/><size memory="200M"/>
  <worldbody><geom type="plane" size="50 50 1"/>{"".join(parts)}</worldbody>
</mujoco>
"""


def duration(step: Callable[[int], None], steps: int = 20) -> float:
    """Duration of a step [s], measured over at least `LEAST` seconds."""
    taken, begin = 0, time.perf_counter()
    while (now := time.perf_counter() - begin) < LEAST:
        step(steps)
        taken += steps
    return now / taken


def measure(bodies: int, args: argparse.Namespace) -> None:
    """Measure one number of bodies, and print the times."""
    begin = time.perf_counter()
    mj = mujoco.MjModel.from_xml_string(clumps_xml(bodies, args.clump or bodies))
    model = simengine.load_model(mj)
    loading = time.perf_counter() - begin
    data = mujoco.MjData(mj)
    mujoco.mj_step(mj, data, SETTLE)
    state = {name: getattr(data, name).copy() for name in ("qpos", "qvel", "qacc_warmstart")}
    islands = data.nisland
    largest = max(data.island_nv[:islands], default=0)
    times = {"mujoco": duration(lambda n: mujoco.mj_step(mj, data, n))}
    for form in ("islands", *(("dense",) if args.dense else ())):
        model.table.solve_by_islands(form == "islands" and model.table.has_islands)
        sim = simengine.Simulation(model, 1, backend="host", executor="serial", dtype=args.dtype)
        sim.set_state(**state)
        sim.step()
        times[form] = duration(sim.step, 20 if form == "islands" else 1)
    shown = "  ".join(f"{name} {1e3 * seconds:9.3f} ms" for name, seconds in times.items())
    world = f"{bodies:5d} bodies  nv {mj.nv:5d}  rows {data.nefc:5d}  islands {islands:4d}, largest nv {largest:4d}"
    print(f"{world}  {shown}  loading {loading:.2f} s", flush=True)


def main() -> None:
    """Measure every number of bodies."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bodies", type=int, nargs="+", default=[10, 30, 100, 300])
    parser.add_argument("--clump", type=int, default=6, help="bodies that touch each other; 0 for all")
    parser.add_argument("--dense", action="store_true", help="solve as one dense problem too")
    parser.add_argument("--dtype", default="float64", choices=["float32", "float64"])
    args = parser.parse_args()
    for bodies in args.bodies:
        measure(bodies, args)


if __name__ == "__main__":
    main()
