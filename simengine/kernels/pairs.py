"""Kernels of models whose pairs of geoms are found anew in every step, in the order of their launch."""

from __future__ import annotations

from simengine.kernels.kernel import Kernel
from simengine.stages.broadphase import BROADPHASE, COLLIDE, COUNT_PAIRS, FIND_PAIRS, PLACE_CONTACTS, SCAN_PAIRS

PAIR_KERNELS: tuple[Kernel, ...] = (
    Kernel("broadphase", (BROADPHASE,), unit="wide world"),
    Kernel("scan_pairs", (SCAN_PAIRS,), unit="column"),
    Kernel("find_pairs", (FIND_PAIRS,), unit="wide world"),
    Kernel("collide", (COLLIDE,), unit="slice", resident=2),
    Kernel("count_pairs", (COUNT_PAIRS,), unit="wide world"),
    Kernel("place_contacts", (PLACE_CONTACTS,), unit="slice"),
)
