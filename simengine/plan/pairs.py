"""Kernels of models for which a broadphase finds the pairs of geoms anew in every step.

    broadphase ── scan_pairs ── counts ── find_pairs ── collide ── count_pairs ── scan ── counts ── copy_contacts

Pairs are counted before they are written, and contacts before they are stored, so that arenas can grow in between.
"""

from __future__ import annotations

from simengine.kernels.kernel import Kernel
from simengine.physics.collision.broadphase.broadphase import (
    BROADPHASE,
    COLLIDE,
    COPY_CONTACTS,
    COUNT_PAIRS,
    FIND_PAIRS,
    SCAN_PAIRS,
)

PAIR_KERNELS: tuple[Kernel, ...] = (
    Kernel("broadphase", (BROADPHASE,), block_per_unit=True),
    Kernel("scan_pairs", (SCAN_PAIRS,), unit="column"),
    Kernel("find_pairs", (FIND_PAIRS,), block_per_unit=True),
    Kernel("collide", (COLLIDE,), unit="slice", min_blocks_per_multiprocessor=2),
    Kernel("count_pairs", (COUNT_PAIRS,), block_per_unit=True),
    Kernel("copy_contacts", (COPY_CONTACTS,), unit="slice"),
)
"""What finds the contacts, in the order of launch."""
