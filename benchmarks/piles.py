"""Time of a step of piles against their number of bodies, by phase: `python -m benchmarks.piles --bodies 10 100 1000`.

Spheres, capsules, boxes or a mixture of them fall into a bin and come to rest on each other, so that a world is one
large island. The time of a phase is the sum over its kernels in a traced step. MuJoCo's C runs on one thread of the
host from the same states, and the times of its functions are given for the same phases.

Cells, such as `--cells 1000x256 2000x1` (bodies and worlds), are measured in their order. Each has `--limit` seconds,
without the time to compile kernels. If a cell fails, its row says why. The file of results is written after each cell.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import mujoco
import numpy as np

import simengine
from simengine.cli.results.machine import result_header
from simengine.cli.results.result_file import write_json
from simengine.zoo import PILES, pile_xml

SETTLING = 8
"""Number of solver iterations while a pile falls."""

STATE = ("qpos", "qvel", "qacc_warmstart")

PHASES = ("position", "broadphase", "narrowphase", "smooth", "rows", "islands", "solver", "integration")
_ROWS = ("constraint", "only_constraint")
_BROAD = ("collision", "only_collision", "broadphase", "scan_pairs", "find_pairs", "scan", "only_scan")
_NARROW = ("copy_contacts",)
_POSITION = ("guard", "kinematics", "sites", "com_pos", "tendon", "position", "poses")
_SMOOTH = (
    *("crb", "factor", "com_vel", "passive", "rne", "actuation", "acceleration", "fluid", "smooth", "transmission"),
    *("inertia", "forces"),
)


class Pile(NamedTuple):
    """The state of a pile: arrays of one world, after a number of steps."""

    mj: mujoco.MjModel
    state: dict[str, np.ndarray]
    steps: int


def settled(bodies: int, kind: str, steps: int) -> Pile:
    """Let a pile fall in MuJoCo for a number of steps, with few iterations of a cheap solver."""
    mj = mujoco.MjModel.from_xml_string(pile_xml(bodies, kind))
    data = mujoco.MjData(mj)
    solver, iterations = mj.opt.solver, mj.opt.iterations
    mj.opt.solver, mj.opt.iterations = mujoco.mjtSolver.mjSOL_CG, SETTLING
    mujoco.mj_step(mj, data, steps)
    mj.opt.solver, mj.opt.iterations = solver, iterations
    return Pile(mj, {name: getattr(data, name).copy() for name in STATE}, steps)


@cache
def settled_by_engine(bodies: int, kind: str, steps: int, seconds: float, backend: str, dtype: str) -> Pile:
    """Let a pile fall in simengine, for at most `steps` steps and `seconds` seconds."""
    mj = mujoco.MjModel.from_xml_string(pile_xml(bodies, kind))
    sim = simengine.Simulation(mj, 1, backend=backend, dtype=dtype)
    sim.step()  # the first step compiles kernels
    begin, done = time.perf_counter(), 1
    while done < steps and time.perf_counter() - begin < seconds:
        number = min(10, steps - done)
        sim.step(number)
        done += number
        sim.synchronize()
    group = sim.groups[0]
    state = {name: group.to_host(group.field(name))[0].astype(float) for name in STATE}
    sim.close()
    return Pile(mj, state, done)


def phase_of(kernel: str) -> str:
    """The phase to which a kernel belongs."""
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
    if stem.startswith(_POSITION) and not stem.startswith(_NARROW):
        return "position"
    return "smooth" if stem.startswith(_SMOOTH) else "narrowphase"


def phases(sim: simengine.Simulation, repeats: int) -> dict[str, float]:
    """Duration of each phase in a step [s], the median over `repeats` traced steps."""
    found: dict[str, list[float]] = {phase: [] for phase in PHASES}
    for _ in range(repeats):
        total = dict.fromkeys(PHASES, 0.0)
        for event in sim.schedule.trace_step().events:
            total[phase_of(event.name)] += event.end - event.start
        for phase, values in found.items():
            values.append(total[phase])
    return {phase: statistics.median(values) for phase, values in found.items()}


def timed(call: Callable[[], None], least: float) -> float:
    """Duration of a call [s], measured over at least `least` seconds."""
    number, begin = 0, time.perf_counter()
    while number == 0 or time.perf_counter() - begin < least:
        call()
        number += 1
    return (time.perf_counter() - begin) / number


def mujoco_times(pile: Pile, least: float, limit: float) -> dict[str, float]:
    """Durations of MuJoCo's functions on the pile and of a step [s]; only of a step if `limit` is too short for all."""
    mj, data = pile.mj, mujoco.MjData(pile.mj)

    def restore() -> None:
        for name, values in pile.state.items():
            getattr(data, name)[:] = values

    restore()
    step = timed(lambda: mujoco.mj_step(mj, data), 0.0)
    if 6 * step > limit:
        return {"step": step}

    def position() -> None:
        mujoco.mj_kinematics(mj, data)
        mujoco.mj_comPos(mj, data)

    restore()
    mujoco.mj_forward(mj, data)
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
    """Measure one pile, and return a row of results [s]."""
    if args.settle_by == "mujoco":
        pile = settled(bodies, kind, args.settle)
    else:
        pile = settled_by_engine(bodies, kind, args.settle, args.limit / 3, args.backend, args.dtype)
    begin = time.perf_counter()
    model = simengine.load_model(pile.mj)
    loading = time.perf_counter() - begin
    executor = "serial" if args.backend == "host" else "auto"
    kept = ("solver_niter",)
    sim = simengine.Simulation(model, worlds, backend=args.backend, dtype=args.dtype, executor=executor, keep=kept)
    sim.set_state(**pile.state)
    sim.step(3)
    sim.synchronize()

    def step() -> None:
        sim.step()
        sim.synchronize()

    seconds = timed(step, min(args.seconds, args.limit / 3))
    by_phase = phases(sim, max(1, min(3, int(args.limit / 6 / seconds))))
    result: dict[str, Any] = {"kind": kind, "bodies": bodies, "worlds": worlds}
    result |= {"contacts": sim.schedule.counts()["ncon"] // worlds, "rows": sim.schedule.counts()["nefc"] // worlds}
    result |= {"nv": int(pile.mj.nv), "settled_steps": pile.steps, "loading": loading, "step": seconds}
    result |= {"phases": by_phase, "bytes": sim.nbytes(), "backend": args.backend, "dtype": args.dtype}
    result |= {"executor": sim.schedule.executor, "solver_niter_max": int(sim.field("solver_niter").max())}
    sim.close()
    alone = args.alone or bodies > args.mujoco_up_to
    return result | {"mujoco": {} if alone else mujoco_times(pile, args.seconds, args.limit / 3)}


def attempted(bodies: int, worlds: int, kind: str, args: argparse.Namespace) -> dict[str, Any]:
    """The same, or a row with the reason of a failure."""
    try:
        return measure(bodies, worlds, kind, args)
    except (simengine.BackendError, simengine.NonFiniteError, MemoryError) as error:
        return {"kind": kind, "bodies": bodies, "worlds": worlds, "error": str(error)}


def shown(result: dict[str, Any]) -> Iterator[str]:
    """Lines of text for a measurement, in milliseconds for all worlds."""
    head = f"{result['kind']:8s}{result['bodies']:6d} bodies x {result['worlds']:4d}"
    if "error" in result:
        yield f"{head}  {result['error']}"
        return
    yield f"{head}  contacts {result['contacts']:6d}  rows {result['rows']:6d}  loading {result['loading']:.2f} s"
    for who, step, parts in (
        ("simengine", result["step"], result["phases"]),
        ("mujoco", result["mujoco"].get("step", math.nan), {k: v for k, v in result["mujoco"].items() if k != "step"}),
    ):
        yield f"    {who:10s} step {1e3 * step:10.3f} ms  " + "  ".join(f"{k} {1e3 * v:.3f}" for k, v in parts.items())


def cell(text: str) -> tuple[int, int]:
    """An argument such as 1000x256, as numbers of bodies and worlds.

    Raises:
        ValueError: the text is something else.
    """
    bodies, worlds = map(int, text.split("x"))
    if bodies < 1 or worlds < 1:
        raise ValueError(text)
    return bodies, worlds


def main() -> None:
    """Measure every pile."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bodies", type=int, nargs="+", default=[10, 100, 1000])
    parser.add_argument("--worlds", type=int, nargs="+", default=[1])
    parser.add_argument("--cells", type=cell, nargs="+", help="BODIESxWORLDS, instead of all bodies with all worlds")
    parser.add_argument("--kinds", nargs="+", default=list(PILES), choices=PILES)
    parser.add_argument("--backend", default="host", choices=["host", "cuda"])
    parser.add_argument("--dtype", default="float64", choices=["float32", "float64"])
    parser.add_argument("--settle", type=int, default=300, help="steps before the measurement")
    parser.add_argument("--settle-by", default="mujoco", choices=["mujoco", "engine"], help="who makes them")
    parser.add_argument("--seconds", type=float, default=1.0, help="least duration of a measurement")
    parser.add_argument("--limit", type=float, default=600.0, help="seconds for a cell, of which settling has a third")
    parser.add_argument("--alone", action="store_true", help="without MuJoCo's times")
    parser.add_argument("--mujoco-up-to", type=int, default=1000, help="bodies up to which MuJoCo is timed")
    parser.add_argument("--json", type=Path, help="file for the results")
    args = parser.parse_args()
    cells = args.cells or list(product(args.bodies, args.worlds))
    header = result_header("python -m benchmarks.piles " + " ".join(sys.argv[1:]))
    rows: list[dict[str, Any]] = []
    for kind, (bodies, worlds) in product(args.kinds, cells):
        rows.append(attempted(bodies, worlds, kind, args))
        print("\n".join(shown(rows[-1])), flush=True)
        write_json({**header, "rows": rows}, args.json)  # a later failure loses nothing


if __name__ == "__main__":
    main()
