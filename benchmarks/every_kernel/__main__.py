"""Launch every kernel of the engine at least once, with few worlds: `python -m benchmarks.every_kernel --worlds 12`.

Meant to be run under a checker that slows kernels down a hundred times:

    compute-sanitizer --tool memcheck  python -m benchmarks.every_kernel
    compute-sanitizer --tool racecheck python -m benchmarks.every_kernel
    compute-sanitizer --tool synccheck python -m benchmarks.every_kernel
    compute-sanitizer --tool initcheck python -m benchmarks.every_kernel --raw

Run it once without a checker first, so that the kernels are compiled and cached. Arrays are allocations of their own,
so that a checker sees what lies beside them. With `--part 1/4` it takes a quarter of the models, for several processes
side by side, and does not ask whether every kernel ran.

The first models are combs: a free body with teeth of different lengths, so that its height says how many contacts and
constraint rows a world has, beside as many other free bodies as fill groups of 8, 16 and 32 lanes and more. Every size
class of the solver, light pair types, the fused integrators, evaluations, and each stage alone run for each of them;
on the GPU kernels of whole steps too, in and out of a fluid, with shapes of light types and of plain ones.
Then come the models that the tests share, with other solvers and integrators where that means other kernels, and a
heap that is solved island by island. The exit status is 1 if a kernel never ran, or if a world that is healthy holds a
number that is none.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product

import numpy as np

from benchmarks.every_kernel.models import BODIES, TOUCHING, shared_models
from benchmarks.every_kernel.report import report
from benchmarks.every_kernel.runs import Runs, run_model, run_shared, run_whole
from simengine.backends.cuda import CudaBackend
from simengine.backends.host import HostBackend


def own_allocations() -> None:
    """Let CuPy allocate each array by itself instead of from a pool."""
    import cupy

    cupy.cuda.set_allocator(None)


def start_raw() -> None:
    """Let fields and arenas start without a value: on the GPU as they are allocated, on the host as NaN and -1."""

    def on_gpu(self: CudaBackend, shape: tuple[int, ...], dtype: str) -> object:
        return self._cupy.empty(shape, dtype=dtype)

    zeros = HostBackend.zeros

    def on_host(self: HostBackend, shape: tuple[int, ...], dtype: str) -> np.ndarray:
        array = zeros(self, shape, dtype)
        array.reshape(-1).view(np.uint8)[:] = 0xFF
        return array

    CudaBackend.zeros = on_gpu  # type: ignore[method-assign]
    HostBackend.zeros = on_host  # type: ignore[method-assign]


def everything(args: argparse.Namespace, runs: Runs) -> Iterator[Callable[[], list[str]]]:
    """What runs each model and returns what is wrong with its worlds."""
    for bodies in BODIES:
        for integrator in ("Euler", "RK4"):
            yield partial(run_model, bodies, integrator, args, runs)
    if args.backend == "cuda":
        knobs = ("", 'type="ellipsoid" size="0.03 0.04 0.02"', 'type="box" size="0.03 0.04 0.02"')
        forms = product(("Euler", "RK4"), (False, True), knobs)
        for number, (integrator, in_fluid, knob) in enumerate(forms):
            for bodies in BODIES[:3] if knob == "" else BODIES[number % 3 : number % 3 + 1]:
                yield partial(run_whole, bodies, integrator, in_fluid, knob, args, runs)
    for option in ('solver="CG"', 'solver="PGS"', 'cone="elliptic"'):
        yield partial(run_model, 0, "RK4", args, runs, option)
    for name, mj in shared_models():
        yield partial(run_shared, name, mj, args, runs)


def part(text: str) -> tuple[int, int]:
    """K and N of "K/N"."""
    number, _, parts = text.partition("/")
    if not (number.isdigit() and parts.isdigit() and 1 <= int(number) <= int(parts)):
        raise argparse.ArgumentTypeError(f"{text!r} is no part; write K/N with K from 1 to N")
    return int(number), int(parts)


def main() -> int:
    """Run all models; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", default="cuda", choices=["cuda", "host"])
    parser.add_argument("--worlds", type=int, default=len(TOUCHING) + 5, help="at least 12, for every kind of world")
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--dtype", default="float32", choices=["float32", "float64"])
    parser.add_argument("--raw", action="store_true", help="leave memory unset, for initcheck")
    parser.add_argument(
        "--part", type=part, default=(1, 1), metavar="K/N", help="only the Kth of N parts of the models"
    )
    args = parser.parse_args()
    if args.backend == "cuda":
        own_allocations()
    if args.raw:
        start_raw()
    begin, runs, wrong = time.perf_counter(), Runs(), list[str]()
    number, parts = args.part
    for run in list(everything(args, runs))[number - 1 :: parts]:
        wrong += run()
    missing = report(runs)
    wrong += missing if parts == 1 else []
    launches, seconds = sum(runs.values()), time.perf_counter() - begin
    print(f"{launches} launches of {len({name for name, _ in runs})} kernels in {seconds:.1f} s on {args.backend}")
    for problem in wrong:
        print(f"error: {problem}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
