"""Every kernel over worlds, slices and islands; those of whole steps are in `simengine.kernels.step_kernel`."""

from __future__ import annotations

from itertools import product

from simengine.kernels.kernel import Kernel
from simengine.plan.catalogue import NOSLIP_KERNEL, single, step_kernels
from simengine.plan.islands import ISLAND_KERNELS
from simengine.plan.stages import INTEGRATORS, SOLVERS, STAGES


def all_kernels() -> tuple[Kernel, ...]:
    """Every kernel except those of whole steps, each once."""
    kernels = [*ISLAND_KERNELS, NOSLIP_KERNEL, *map(single, STAGES)]
    for integrator, solver in product(("", *INTEGRATORS), SOLVERS):
        kernels += step_kernels(integrator, solver)
    return tuple({kernel.name: kernel for kernel in kernels}.values())
