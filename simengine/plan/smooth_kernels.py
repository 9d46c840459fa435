"""Kernels of inertia, smooth forces and the acceleration that they cause."""

from __future__ import annotations

from dataclasses import replace

from simengine.backends.base import LANES_OF_A_BLOCK
from simengine.kernels.kernel import Kernel
from simengine.physics.actuation.actuation import ACTUATION
from simengine.physics.actuation.actuation_general import ACTUATION_GENERAL
from simengine.physics.actuation.adhesion import ADHESION
from simengine.physics.actuation.transmission import TRANSMISSION
from simengine.physics.dynamics.acceleration import ACCELERATION
from simengine.physics.dynamics.crb import CRB
from simengine.physics.dynamics.crb_general import CRB_GENERAL
from simengine.physics.dynamics.factor_m import FACTOR_M
from simengine.physics.dynamics.rne import RNE
from simengine.physics.kinematics.com_vel import COM_VEL
from simengine.physics.passive.fluid import FLUID
from simengine.physics.passive.fluid_general import FLUID_GENERAL
from simengine.physics.passive.gravcomp import GRAVCOMP
from simengine.physics.passive.passive import PASSIVE
from simengine.physics.passive.passive_general import PASSIVE_GENERAL
from simengine.physics.tendons.tendon_passive import TENDON_PASSIVE
from simengine.physics.tendons.tendon_velocity import TENDON_VELOCITY
from simengine.plan.scratch import WITHOUT_COLUMNS
from simengine.plan.stages import single

# Forces come first, so that the inertia and its factor take the place of what they work with.
SMOOTH = Kernel(
    "smooth",
    (COM_VEL, PASSIVE, RNE, ACTUATION, CRB, FACTOR_M, ACCELERATION),
    direct=frozenset(),
    preload=frozenset({"cdof", "qvel", "qpos"}),
    min_blocks_per_multiprocessor=8,
)
SMOOTH_FLUID = Kernel(
    "smooth_fluid",
    (COM_VEL, PASSIVE, FLUID, RNE, ACTUATION, CRB, FACTOR_M, ACCELERATION),
    direct=frozenset(),
    preload=frozenset({"cdof", "qvel", "qpos"}),
    min_blocks_per_multiprocessor=8,
)
# `smooth` as three kernels: inertia and forces, which do not depend on each other, and then the acceleration.
INERTIA = Kernel(
    "inertia",
    (CRB, FACTOR_M),
    direct=frozenset(),
    preload=frozenset({"cdof"}),
    min_blocks_per_multiprocessor=8,
)
FORCES, FORCES_FLUID = (
    Kernel(
        name,
        tuple(stage for stage in whole.stages if stage not in (CRB, FACTOR_M, ACCELERATION)),
        direct=frozenset(),
        preload=frozenset({"cdof", "qvel", "qpos"}),
        min_blocks_per_multiprocessor=8,
        constants=(WITHOUT_COLUMNS,),
    )
    for name, whole in (("forces", SMOOTH), ("forces_fluid", SMOOTH_FLUID))
)
SMOOTH_GENERAL = Kernel(
    "smooth_general",
    (
        *(COM_VEL, PASSIVE_GENERAL, TENDON_VELOCITY, TENDON_PASSIVE, FLUID_GENERAL, RNE, TRANSMISSION),
        *(ACTUATION_GENERAL, GRAVCOMP, CRB_GENERAL, FACTOR_M, ACCELERATION),
    ),
    direct=frozenset({"actuator_moment"}),
    preload=frozenset({"cdof", "qvel", "qpos"}),
    min_blocks_per_multiprocessor=8,
)
# Many actuators have a kernel of their own, in which a block works on each world.
ACTUATORS_BY_BLOCK = Kernel(
    "actuators_by_block",
    (TENDON_VELOCITY, TRANSMISSION, ACTUATION_GENERAL),
    direct=frozenset({"actuator_moment"}),
    preload=frozenset({"qvel"}),
    own_lanes=LANES_OF_A_BLOCK,
    min_blocks_per_multiprocessor=6,
)
SMOOTH_DRIVEN = replace(
    SMOOTH_GENERAL,
    name="smooth_driven",
    stages=tuple(stage for stage in SMOOTH_GENERAL.stages if stage not in ACTUATORS_BY_BLOCK.stages),
)
# The same as three kernels, of which the first two do not depend on each other, and then the acceleration.
INERTIA_GENERAL = replace(
    SMOOTH_GENERAL, name="inertia_general", stages=(CRB_GENERAL, FACTOR_M), preload=frozenset({"cdof"})
)
FORCES_GENERAL, FORCES_DRIVEN = (
    replace(
        whole,
        name=name,
        stages=tuple(stage for stage in whole.stages if stage not in (*INERTIA_GENERAL.stages, ACCELERATION)),
        constants=(WITHOUT_COLUMNS,),
    )
    for name, whole in (("forces_general", SMOOTH_GENERAL), ("forces_driven", SMOOTH_DRIVEN))
)
# Few worlds of many actuators have a block for the inertia, and forces that do not wait for those of the actuators.
INERTIA_BY_BLOCK = replace(
    INERTIA_GENERAL,
    name="inertia_by_block",
    stages=(CRB_GENERAL,),
    own_lanes=LANES_OF_A_BLOCK,
    min_blocks_per_multiprocessor=6,
)
FORCES_BESIDE = replace(
    FORCES_GENERAL,
    name="forces_beside",
    stages=(COM_VEL, PASSIVE_GENERAL, TENDON_VELOCITY, TENDON_PASSIVE, FLUID_GENERAL, RNE),
)
SMOOTH_ADHESION = replace(
    SMOOTH_GENERAL,
    name="smooth_adhesion",
    stages=tuple(
        s for stage in SMOOTH_GENERAL.stages for s in ((stage, ADHESION) if stage is TRANSMISSION else (stage,))
    ),
)


def smooth(general: bool, has_fluid: bool, adhesion: bool) -> Kernel:
    """The kernel of inertia, smooth forces and the acceleration they cause.

    Args:
        general: whether the model has features that only the general stages support.
        has_fluid: whether the model has a medium.
        adhesion: whether the model has adhesion actuators. They act at contacts, so the kernel must follow the
            narrowphase.
    """
    if adhesion:
        return SMOOTH_ADHESION
    if general:
        return SMOOTH_GENERAL
    return SMOOTH_FLUID if has_fluid else SMOOTH


def smooth_in_three(general: bool, has_fluid: bool, driven: bool) -> tuple[Kernel, Kernel, Kernel]:
    """The same as three kernels: inertia and forces, which may run at once, then acceleration.

    Args:
        general, has_fluid: as in `smooth`.
        driven: whether a kernel before has found the forces of the actuators.
    """
    if general:
        return (INERTIA_GENERAL, FORCES_DRIVEN if driven else FORCES_GENERAL, single(ACCELERATION))
    return (INERTIA, FORCES_FLUID if has_fluid else FORCES, single(ACCELERATION))
