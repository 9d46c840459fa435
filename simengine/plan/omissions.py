"""Variants of kernels without the code for what a model lacks."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from simengine.kernels.kernel import Kernel
from simengine.plan import catalogue
from simengine.plan.stages import NOSLIP


@cache
def for_pyramids(kernel: Kernel) -> Kernel:
    """The kernel's variant for pyramidal cones, where it removes slip: elliptic ones take registers from the sweeps."""
    if NOSLIP not in kernel.stages:
        return kernel
    return replace(kernel, name=f"{kernel.name}_pyramids", constants=(*kernel.constants, ("NOSLIP_CONES", 0)))


NOSLIP_OF_PYRAMIDS = for_pyramids(catalogue.NOSLIP_KERNEL)
