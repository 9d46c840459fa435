"""Kernels of models whose pairs of geoms are found in every step, without a table of candidates."""

from __future__ import annotations

from simengine.kernels.kernel import Kernel
from simengine.model.model import Model
from simengine.physics.actuation.adhesion import ADHESION
from simengine.physics.collision.broadphase.broadphase import (
    BROADPHASE,
    COLLIDE,
    COUNT_PAIRS,
    FIND_PAIRS,
    PLACE_CONTACTS,
    SCAN_PAIRS,
)
from simengine.physics.islands.islands import CONSTRAINT_BLOCKS
from simengine.physics.islands.pgs_islands import PGS_WARM
from simengine.physics.sensors.body_forces import BODY_FORCES
from simengine.physics.sensors.rne_post import RNE_POST_GENERAL
from simengine.physics.sensors.sensor_acc import SENSOR_ACC

PAIR_KERNELS: tuple[Kernel, ...] = (
    Kernel("broadphase", (BROADPHASE,), wide=True),
    Kernel("scan_pairs", (SCAN_PAIRS,), unit="column"),
    Kernel("find_pairs", (FIND_PAIRS,), wide=True),
    Kernel("collide", (COLLIDE,), unit="slice", resident=2),
    Kernel("count_pairs", (COUNT_PAIRS,), wide=True),
    Kernel("place_contacts", (PLACE_CONTACTS,), unit="slice"),
)
"""The kernels that find the contacts, in the order of launch."""

MIXING_STAGES = (CONSTRAINT_BLOCKS, PGS_WARM)
"""Stages of worlds solved island by island that read parameters of contacts."""

MIXING: dict[str, Kernel] = {
    "rne_post_general": Kernel("rne_post_general_mixing", (RNE_POST_GENERAL,), mixes=True),
    "sense_forces": Kernel("sense_forces_mixing", (BODY_FORCES, SENSOR_ACC), mixes=True),
    "only_adhesion": Kernel("only_adhesion_mixing", (ADHESION,), mixes=True),
}
"""Kernels for contacts with their own parameters, by the name of the kernel for a table of candidates."""


def mixing(model: Model, kernel: Kernel) -> Kernel:
    """The kernel, or its form for contacts with their own parameters if the model finds its pairs."""
    return MIXING.get(kernel.name, kernel) if model.finds_pairs else kernel
