"""Time of a step of piles against their bodies, by phase: `python -m benchmarks.piles --bodies 10 100 1000`.

Spheres, capsules, boxes or a mixture of them fall into a bin and come to rest on each other, so that a world is one
large island. Phases are sums over the kernels of one traced step; beside them stands MuJoCo's C on one thread of the
host, from the same states, with the times of its own functions for the same phases.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import time
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any, NamedTuple

import mujoco
import numpy as np

import simengine
from simengine.zoo import PILES, pile_xml

SETTLING = 8
"""Iterations of the solver while a pile falls."""

PHASES = ("position", "broadphase", "narrowphase", "smooth", "rows", "islands", "solver", "integration")
_ROWS = ("constraint", "only_constraint")
_BROAD = ("collision", "only_collision", "broadphase", "scan_pairs", "find_pairs", "scan", "only_scan")
_POSITION = ("guard", "kinematics", "sites", "com_pos", "tendon", "position")
_SMOOTH = ("crb", "factor", "com_vel", "passive", "rne", "actuation", "acceleration", "fluid", "smooth", "transmission")


class Pile(NamedTuple):
    """A pile and where it stands in time: arrays of one world."""

    mj: mujoco.MjModel
    data: mujoco.MjData
    state: dict[str, np.ndarray]


def settled(bodies: int, kind: str, steps: int) -> Pile:
    """A pile after MuJoCo let it fall for some steps, with few iterations of a cheap solver."""
    mj = mujoco.MjModel.from_xml_string(pile_xml(bodies, kind))
    data = mujoco.MjData(mj)
    solver, iterations = mj.opt.solver, mj.opt.iterations
    mj.opt.solver, mj.opt.iterations = mujoco.mjtSolver.mjSOL_CG, SETTLING
    mujoco.mj_step(mj, data, steps)
    mj.opt.solver, mj.opt.iterations = solver, iterations
    return Pile(mj, data, {name: getattr(data, name).copy() for name in ("qpos", "qvel", "qacc_warmstart")})


def phase_of(kernel: str) -> str:
    """The phase that a kernel belongs to."""
    if kernel.startswith(("solve", "pgs", "finish", "large")):
        return "solver"
    for phase, names in (("rows", _ROWS), ("broadphase", _BROAD)):
        if kernel.startswith(names) and "islands" not in kernel:
            return phase
    stem = kernel.removeprefix("only_")
    if stem.startswith(("islands", "scan_islands", "gather", "scatter")):
        return "islands"
    if stem.startswith(("euler", "rk4", "implicit", "advance", "activation")):
        return "integration"
    if stem.startswith(_POSITION):
        return "position"
    return "smooth" if stem.startswith(_SMOOTH) else "narrowphase"


def phases(sim: simengine.Simulation, repeats: int) -> dict[str, float]:
    """Seconds of each phase in a step, the median over some traced steps."""
    found: dict[str, list[float]] = {phase: [] for phase in PHASES}
    for _ in range(repeats):
        total = dict.fromkeys(PHASES, 0.0)
        for event in sim.trace().events:
            total[phase_of(event.name)] += event.end - event.start
        for phase, values in found.items():
            values.append(total[phase])
    return {phase: statistics.median(values) for phase, values in found.items()}


def timed(call: Callable[[], None], least: float) -> float:
    """Seconds a call takes, over at least so many seconds."""
    number, begin = 0, time.perf_counter()
    while number == 0 or time.perf_counter() - begin < least:
        call()
        number += 1
    return (time.perf_counter() - begin) / number


def mujoco_times(pile: Pile, least: float) -> dict[str, float]:
    """Seconds of MuJoCo's functions on the pile, and of a step."""
    mj, data = pile.mj, mujoco.MjData(pile.mj)

    def restore() -> None:
        for name, values in pile.state.items():
            getattr(data, name)[:] = values

    restore()
    mujoco.mj_forward(mj, data)

    def position() -> None:
        mujoco.mj_kinematics(mj, data)
        mujoco.mj_comPos(mj, data)

    found = {
        "position": timed(position, least / 8),
        "collision": timed(lambda: mujoco.mj_collision(mj, data), least / 4),
        "rows": timed(lambda: mujoco.mj_makeConstraint(mj, data), least / 4),
    }
    restore()
    mujoco.mj_forward(mj, data)
    found["solver"] = timed(lambda: mujoco.mj_fwdConstraint(mj, data), least / 4)
    restore()
    return found | {"step": timed(lambda: mujoco.mj_step(mj, data), least)}


def measure(bodies: int, worlds: int, kind: str, args: argparse.Namespace) -> dict[str, Any]:
    """Times of one pile, in seconds."""
    pile = settled(bodies, kind, args.settle)
    begin = time.perf_counter()
    model = simengine.load_model(pile.mj)
    loading = time.perf_counter() - begin
    sim = simengine.Simulation(
        model, worlds, backend=args.backend, dtype=args.dtype, executor="serial" if args.backend == "host" else "auto"
    )
    sim.set_state(**pile.state)
    sim.step(3)
    sim.synchronize()

    def step() -> None:
        sim.step()
        sim.synchronize()

    seconds = timed(step, args.seconds)
    by_phase = phases(sim, 3)
    result: dict[str, Any] = {"kind": kind, "bodies": bodies, "worlds": worlds, "contacts": int(pile.data.ncon)}
    result |= {"rows": int(pile.data.nefc), "nv": int(pile.mj.nv), "loading": loading, "step": seconds}
    result |= {"phases": by_phase, "bytes": sim.nbytes(), "backend": args.backend, "dtype": args.dtype}
    sim.close()
    return result | {"mujoco": {} if args.alone else mujoco_times(pile, args.seconds)}


def shown(result: dict[str, Any]) -> Iterator[str]:
    """Lines that tell of a measurement, in milliseconds of all worlds."""
    head = f"{result['kind']:8s}{result['bodies']:6d} bodies x {result['worlds']:4d}"
    yield f"{head}  contacts {result['contacts']:6d}  rows {result['rows']:6d}  loading {result['loading']:.2f} s"
    for who, step, parts in (
        ("simengine", result["step"], result["phases"]),
        ("mujoco", result["mujoco"].get("step", math.nan), {k: v for k, v in result["mujoco"].items() if k != "step"}),
    ):
        yield f"    {who:10s} step {1e3 * step:10.3f} ms  " + "  ".join(f"{k} {1e3 * v:.3f}" for k, v in parts.items())


def main() -> None:
    """Measure every pile."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bodies", type=int, nargs="+", default=[10, 100, 1000])
    parser.add_argument("--worlds", type=int, nargs="+", default=[1])
    parser.add_argument("--kinds", nargs="+", default=list(PILES), choices=PILES)
    parser.add_argument("--backend", default="host", choices=["host", "cuda"])
    parser.add_argument("--dtype", default="float64", choices=["float32", "float64"])
    parser.add_argument("--settle", type=int, default=300, help="steps that MuJoCo makes before")
    parser.add_argument("--seconds", type=float, default=1.0, help="least duration of a measurement")
    parser.add_argument("--alone", action="store_true", help="without MuJoCo's times")
    parser.add_argument("--json", help="file for the results")
    args = parser.parse_args()
    results = []
    for kind, bodies, worlds in product(args.kinds, args.bodies, args.worlds):
        results.append(measure(bodies, worlds, kind, args))
        print("\n".join(shown(results[-1])), flush=True)
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump(results, file, indent=1)


if __name__ == "__main__":
    main()
