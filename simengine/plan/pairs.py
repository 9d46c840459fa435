"""Kernels of models for which a broadphase finds the pairs of geoms anew in every step.

    broadphase ── scan_pairs ── counts ── find_pairs ── collide ── count_pairs ── scan ── counts ── place_contacts

Pairs are counted before they are written, and contacts before they are stored, so that arenas can grow in between.
"""

from __future__ import annotations

from simengine.kernels.kernel import Kernel
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
