"""Kernels of models whose pairs of geoms are found anew in every step.

    broadphase ── scan_pairs ── counts ── find_pairs ── collide ── count_pairs ── scan ── counts ── place_contacts

How many pairs there are is known before any is written, and how many contacts before any is stored.
"""

from __future__ import annotations

from dataclasses import replace

from simengine.kernels.kernel import Kernel
from simengine.model.model_table import ModelTable
from simengine.physics.collision.broadphase.broadphase import (
    BROADPHASE,
    COLLIDE,
    COUNT_PAIRS,
    FIND_PAIRS,
    PLACE_CONTACTS,
    SCAN_PAIRS,
)

PAIR_KERNELS: tuple[Kernel, ...] = (
    Kernel("broadphase", (BROADPHASE,), wide=True),
    Kernel("scan_pairs", (SCAN_PAIRS,), unit="column"),
    Kernel("find_pairs", (FIND_PAIRS,), wide=True),
    Kernel("collide", (COLLIDE,), unit="slice", resident=2),
    Kernel("count_pairs", (COUNT_PAIRS,), wide=True),
    Kernel("place_contacts", (PLACE_CONTACTS,), unit="slice"),
)
"""What finds the contacts, in the order of launch."""


def taking_parameters(kernel: Kernel) -> Kernel:
    """The kernel's variant that reads the parameters of contacts beside them, where one of its stages reads any."""
    if kernel.mixes or not any(stage.contact_parameters for stage in kernel.stages):
        return kernel
    return replace(kernel, name=f"{kernel.name}_mixing", mixes=True)


def for_pairs_of(model: ModelTable, kernel: Kernel) -> Kernel:
    """The kernel, or its variant for the contacts of found pairs where the model's pairs are found."""
    return taking_parameters(kernel) if model.finds_pairs else kernel
