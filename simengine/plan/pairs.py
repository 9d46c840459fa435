"""Kernels of models for which a broadphase finds the pairs of geoms anew in every step.

    broadphase ── scan_pairs ── counts ── find_pairs ── collide ── count_pairs ── scan ── counts ── place_contacts

Pairs are counted before they are written, and contacts before they are stored, so that arenas can grow in between.
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
"""The kernels that find pairs and contacts, in the order of their launches."""


def taking_parameters(kernel: Kernel) -> Kernel:
    """The variant of a kernel that reads parameters such as friction from each contact, not from the model table.

    A kernel whose stages read no contact parameters is returned as it is.
    """
    if kernel.mixes or not any(stage.contact_parameters for stage in kernel.stages):
        return kernel
    return replace(kernel, name=f"{kernel.name}_mixing", mixes=True)


def for_pairs_of(model: ModelTable, kernel: Kernel) -> Kernel:
    """The kernel, or its variant `taking_parameters` if a broadphase finds the model's pairs."""
    return taking_parameters(kernel) if model.finds_pairs else kernel
