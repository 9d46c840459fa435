"""Compiles every kernel for CUDA without a GPU: `python -m simengine.plan.check_cuda [--arch 80 90 100]`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from simengine.errors import BackendError
from simengine.kernels.cuda_build import ISLAND_LANES, WIDE_LANES, compile_cubin, compile_ptx, kernel_lanes
from simengine.kernels.kernel import Kernel
from simengine.kernels.step_kernel import STEP_KERNELS, StepKernel
from simengine.plan import islands
from simengine.plan.every_kernel import all_kernels
from simengine.plan.large_islands import for_few_large, for_many_huge
from simengine.plan.omissions import NOSLIP_OF_PYRAMIDS
from simengine.plan.rows_apart import with_rows_apart
from simengine.plan.stages import COLLISION_GENERAL
from simengine.plan.trees import with_trees_apart
from simengine.plan.variants import (
    HALF_WARP,
    with_branches,
    with_inertia_eliminated,
    with_largest_faces,
    with_rows_in_half_warps,
    with_rows_in_registers,
    with_warps,
    with_wide_matrices,
    without_code_for_cones,
    without_code_for_cones_of_islands,
    without_some_kinds,
)

Job = tuple[Kernel, str, int, int]


def _every_build(args: argparse.Namespace) -> list[Job]:
    """Kernel, dtype, lanes and architecture of all builds that were asked for."""
    jobs = [
        (k, d, kernel_lanes(k, n), a) for k in all_kernels() for d in args.dtype for n in args.lanes for a in args.arch
    ]
    jobs += [
        (k, d, ISLAND_LANES[1], a) for k in all_kernels() if k.block_per_unit for d in args.dtype for a in args.arch
    ]
    jobs += [(k, d, n, a) for k in STEP_KERNELS for d in args.dtype for n in args.lanes for a in args.arch]
    # Kernels for large worlds differ from the others only in their number of lanes, so one architecture is enough.
    alone = (k for k in without_some_kinds() if k.stages == (COLLISION_GENERAL,))  # large worlds have no fused ones
    jobs += [(k, d, WIDE_LANES, args.arch[0]) for k in (*islands.of_large_worlds(), *alone) for d in args.dtype]
    jobs += [(k, d, kernel_lanes(k, args.lanes[0]), args.arch[0]) for k in with_largest_faces() for d in args.dtype]
    jobs += [(k, d, kernel_lanes(k, args.lanes[0]), args.arch[0]) for k in without_some_kinds() for d in args.dtype]
    jobs += [(with_rows_in_registers(d), d, 32, a) for d in args.dtype for a in args.arch]
    jobs += [(k, d, n, args.arch[0]) for k in with_inertia_eliminated() for d in args.dtype for n in args.lanes]
    jobs += [
        (k, d, kernel_lanes(k, n), args.arch[0]) for k in with_trees_apart() for d in args.dtype for n in args.lanes
    ]
    jobs += [(with_rows_in_half_warps(d), d, HALF_WARP, a) for d in args.dtype for a in args.arch]
    jobs += [(NOSLIP_OF_PYRAMIDS, d, n, args.arch[0]) for d in args.dtype for n in args.lanes]
    jobs += [(k, d, 32, args.arch[0]) for k in with_branches() for d in args.dtype]
    jobs += [(k, "float32", kernel_lanes(k, 32), a) for k in with_warps() for a in args.arch if "float32" in args.dtype]
    lean = without_code_for_cones() if "float32" in args.dtype else ()
    jobs += [(k, "float32", kernel_lanes(k, 32), args.arch[0]) for k in lean]
    jobs += [(k, d, n, args.arch[0]) for k in islands.of_few_worlds() for d in args.dtype for n in args.lanes]
    few_large = [for_few_large(k) for k in islands.ISLAND_KERNELS if k.block_per_unit]
    jobs += [(k, d, kernel_lanes(k, 32), args.arch[0]) for k in few_large for d in args.dtype]
    huge = [for_many_huge(k) for k in few_large]
    jobs += [(k, d, ISLAND_LANES[1], args.arch[0]) for k in huge for d in args.dtype]
    of_islands = without_code_for_cones_of_islands(islands.ISLAND_KERNELS)
    jobs += [(k, d, kernel_lanes(k, n), args.arch[0]) for k in of_islands for d in args.dtype for n in args.lanes]
    wide = (*with_wide_matrices((36, 48, 64)), *islands.with_matrices_in_registers((36, 56, 64, 84, 128)))
    jobs += [(k, "float32", kernel_lanes(k, 32), args.arch[0]) for k in wide if "float32" in args.dtype]
    jobs += [(k, "float32", n, args.arch[0]) for k in with_rows_apart() for n in (16, 32) if "float32" in args.dtype]
    jobs += [(k, d, kernel_lanes(k, 32), args.arch[0]) for k in islands.with_spread_worlds() for d in args.dtype]
    return list(dict.fromkeys(jobs))


def _one_of_each(jobs: list[Job]) -> list[Job]:
    """One build of each kernel in one of its sizes, and one kernel of whole steps for each integrator.

    The builds take turns, so that every combination of dtype, lanes and architecture compiles some kernels.
    """
    builds: dict[str, list[Job]] = {}
    for job in jobs:
        kernel = job[0]
        whole = isinstance(kernel, StepKernel)
        name = f"steps {kernel.stages[-1].name}" if whole else kernel.name.removesuffix(f"_{kernel.matrix_rows}")
        builds.setdefault(name, []).append(job)
    return [own[i % len(own)] for i, own in enumerate(builds.values())]


def main(arguments: Sequence[str] | None = None) -> int:
    """Compile all builds that were asked for, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--arch", type=int, nargs="+", default=[80, 90, 100])
    parser.add_argument("--lanes", type=int, nargs="+", default=[8, 16, 32])
    parser.add_argument("--dtype", nargs="+", default=["float32", "float64"], choices=["float32", "float64"])
    parser.add_argument("--once", action="store_true", help="each kernel in one of its builds, the next for the next")
    parser.add_argument("--quick", action="store_true", help="with few optimisations, in less than half the time")
    parser.add_argument("--ptx", action="store_true", help="to PTX, which takes a third of the time to machine code")
    args = parser.parse_args(arguments)
    options = ("--Ofast-compile=max",) if args.quick else ()
    jobs = _every_build(args)
    if args.once:
        jobs = _one_of_each(jobs)
    compiled = compile_ptx if args.ptx else compile_cubin
    failures = []

    def compile_one(job: Job) -> None:
        try:
            compiled(*job, options)
        except BackendError as error:
            failures.append(str(error))

    with ThreadPoolExecutor() as pool:
        list(pool.map(compile_one, jobs))
    for failure in failures:
        print(failure, file=sys.stderr)
    print(f"compiled {len(jobs) - len(failures)} of {len(jobs)} kernels")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
