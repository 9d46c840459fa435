"""The kernels over worlds that steps launch, most of which fuse several stages."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from simengine.backends.base import LANES_OF_A_BLOCK
from simengine.kernels.kernel import Kernel
from simengine.physics.actuation.activation import ACTIVATION
from simengine.physics.actuation.transmission import TRANSMISSION
from simengine.physics.collision.collision import (
    COLLISION,
    COLLISION_GENERAL,
)
from simengine.physics.constraints.constraint import CONSTRAINT
from simengine.physics.constraints.constraint_general import CONSTRAINT_GENERAL
from simengine.physics.dynamics.unconstrained import UNCONSTRAINED
from simengine.physics.integration.euler import EULER_FACTOR, EULER_FACTORED
from simengine.physics.integration.implicitfast_diagonal import IMPLICITFAST_DIAGONAL
from simengine.physics.kinematics.com_pos import COM_POS
from simengine.physics.kinematics.frames_in_parts import (
    BODY_PARTS,
    COM_POS_PARTS,
    GEOM_FRAMES,
    GEOM_FRAMES_OF_MANY,
)
from simengine.physics.kinematics.guard import GUARD
from simengine.physics.kinematics.kinematics import KINEMATICS, KINEMATICS_OF_MANY
from simengine.physics.kinematics.sites import SITES
from simengine.physics.sensors.acc_bias import ACC_BIAS
from simengine.physics.sensors.body_forces import BODY_FORCES
from simengine.physics.sensors.energy import ENERGY
from simengine.physics.sensors.rne_post import RNE_POST, RNE_POST_GENERAL
from simengine.physics.sensors.sensor_acc import SENSOR_ACC
from simengine.physics.sensors.sensor_distance import SENSOR_DISTANCE
from simengine.physics.sensors.sensor_pos import SENSOR_POS
from simengine.physics.sensors.sensor_vel import SENSOR_VEL
from simengine.physics.sensors.subtree_vel import SUBTREE_VEL
from simengine.physics.solvers.noslip import NOSLIP
from simengine.physics.solvers.solve_newton_unilateral import SOLVE_NEWTON_UNILATERAL
from simengine.physics.solvers.solve_pgs import SOLVE_PGS
from simengine.physics.stage import Stage
from simengine.physics.tendons.tendon import TENDON
from simengine.physics.tendons.tendon_forces import TENDON_FORCES
from simengine.physics.tendons.tendon_velocity import TENDON_VELOCITY
from simengine.plan.contact_kernels import (
    CLUSTERS_BY_BLOCK,
    COUNT_NEAR,
    COUNTING_BY_WARP,
    COUNTING_IN_EIGHT,
    DEPTH_BY_WARP,
    DISTANCE_IN_EIGHT,
    LIST_BY_BLOCK,
    LIST_NEAR,
    LISTING_BY_CLUSTERS,
    NARROW,
    NARROW_LIGHT,
    NARROW_OWN_ADDRESSES,
    PRISM_KERNELS,
    SCAN_KERNEL,
    SEARCHES,
    TOUCH_IN_EIGHT,
    TOUCHES_OF_MANY,
)
from simengine.plan.scratch import WITHOUT_COLUMNS
from simengine.plan.smooth_kernels import (
    ACTUATORS_BY_BLOCK,
    FORCES,
    FORCES_BESIDE,
    FORCES_DRIVEN,
    FORCES_FLUID,
    FORCES_GENERAL,
    INERTIA,
    INERTIA_BY_BLOCK,
    INERTIA_GENERAL,
    SMOOTH,
    SMOOTH_ADHESION,
    SMOOTH_DRIVEN,
    SMOOTH_FLUID,
    SMOOTH_GENERAL,
)
from simengine.plan.stages import INTEGRATORS, SOLVERS, single
from simengine.state.fields import FIELDS, ROW_SPACES

FUSED_INTEGRATORS = ("euler", "rk4")

_COUNTS = frozenset(
    {
        *("near_cand", "near_adr", "search_near", "search_found", "kept_contact", "kept_prism", "pair_tally"),
        *("ncon", "nefc", "counts"),
    }
)
_ROWS = frozenset(f.name for f in FIELDS if f.space in ROW_SPACES)
_CONTACTS = frozenset(f.name for f in FIELDS if f.space == "contact")
_WRITTEN_ONCE = frozenset({"ten_J", "site_xpos", "site_xmat"})  # in scratch, those of hundreds of sites fill it
_ROWS_READ_ONCE = frozenset({"efc_J"})  # PGS works on efc_Y; without efc_J the scratch holds more rows


POSITION = Kernel(
    "position",
    (GUARD, KINEMATICS, COM_POS, COLLISION),
    direct=_COUNTS,
    preload=frozenset({"qpos"}),
    min_blocks_per_multiprocessor=8,
)
POSITION_IN_SIXTEEN = replace(POSITION, name="position_in_sixteen", own_lanes=16, constants=(("DOFS_BEYOND_LANES", 1),))
"""The same by half a warp for each world of 17 to 32 dofs, of which a whole one would leave most lanes idle."""
POSITION_GENERAL = Kernel(
    "position_general",
    (GUARD, KINEMATICS, SITES, COM_POS, TENDON, COLLISION_GENERAL),
    direct=_COUNTS | _WRITTEN_ONCE,
    preload=frozenset({"qpos"}),
    min_blocks_per_multiprocessor=2,
)
# The same where nobody wants the frames of sites: the tendons' paths find the positions they need.
POSITION_SITELESS, POSES_SITELESS = (
    Kernel(
        name,
        tuple(stage for stage in POSITION_GENERAL.stages if stage not in (SITES, *without)),
        direct=_COUNTS | _WRITTEN_ONCE,
        preload=frozenset({"qpos"}),
        min_blocks_per_multiprocessor=2,
    )
    for name, without in (("position_siteless", ()), ("poses_siteless", (COLLISION_GENERAL,)))
)
# `position` as two kernels, so that `smooth` does not wait for the contacts to be counted.
POSES = Kernel(
    "poses", POSITION.stages[:-1], direct=frozenset(), preload=frozenset({"qpos"}), min_blocks_per_multiprocessor=8
)
POSES_GENERAL = Kernel(
    "poses_general",
    POSITION_GENERAL.stages[:-1],
    direct=_WRITTEN_ONCE,
    preload=frozenset({"qpos"}),
    min_blocks_per_multiprocessor=2,
)
# Long tendons have a kernel of their own, in which a block works on each world.
TENDONS_BY_BLOCK = replace(
    single(TENDON),
    name="tendons_by_block",
    preload=frozenset({"xpos", "xquat", "subtree_com", "cdof"}),
    own_lanes=LANES_OF_A_BLOCK,
    min_blocks_per_multiprocessor=6,
)
POSES_SITES = replace(
    POSES_GENERAL,
    name="poses_sites",
    stages=tuple(stage for stage in POSES_GENERAL.stages if stage is not TENDON),
)
ACTIVATION_KERNEL = Kernel("activation", (ACTIVATION,))
DIAGONAL_KERNEL = Kernel("implicitfast_diagonal", (IMPLICITFAST_DIAGONAL,), min_blocks_per_multiprocessor=6)
NOSLIP_KERNEL = Kernel("noslip", (NOSLIP,), min_blocks_per_multiprocessor=6)
POST = Kernel("rne_post", (RNE_POST,))
POST_GENERAL = Kernel("rne_post_general", (RNE_POST_GENERAL,))
TENDON_POST = Kernel("tendon_forces", (TENDON_FORCES,))
ENERGY_KERNEL = Kernel("energy", (ENERGY,))
ON_DEMAND: tuple[Kernel, ...] = (
    *(Kernel(stage.name, (stage,)) for stage in (SITES, TENDON, TENDON_VELOCITY, TRANSMISSION)),
    ENERGY_KERNEL,
)
"""Kernels that run, in this order and before the integrator, only if nothing else produces a field that is wanted."""
SENSE_MOTION = Kernel("sense_motion", (SUBTREE_VEL, ACC_BIAS, SENSOR_POS, SENSOR_VEL))
SENSE_DISTANCE = Kernel("sense_distance", (SENSOR_DISTANCE,))
SENSE_FORCES = Kernel("sense_forces", (BODY_FORCES, SENSOR_ACC))


def position(general: bool, sites: bool = True) -> Kernel:
    """Guard, kinematics and contact counts in one kernel.

    Args:
        general: whether the model needs the code of heavy pair types, tendons or sites.
        sites: whether somebody reads the frames of sites.
    """
    if not general:
        return POSITION
    return POSITION_GENERAL if sites else POSITION_SITELESS


def poses(general: bool, sites: bool = True) -> Kernel:
    """The same without contact counts."""
    if not general:
        return POSES
    return POSES_GENERAL if sites else POSES_SITELESS


@cache
def with_geoms_in_memory(poses: Kernel) -> Kernel:
    """A kernel of kinematics that writes the frames of geoms to memory, for models of many geoms.

    A geom takes twelve words: with those of a thousand in shared memory, a multiprocessor has room for four worlds.
    """
    stages = tuple(KINEMATICS_OF_MANY if stage is KINEMATICS else stage for stage in poses.stages)
    direct = (poses.direct or frozenset()) | {"geom_xpos", "geom_xmat"}
    return replace(poses, name=f"{poses.name}_of_many", stages=stages, direct=direct)


POSES_OF_MANY = tuple(map(with_geoms_in_memory, (POSES, POSES_GENERAL, POSES_SITELESS)))
"""Every kernel of kinematics for models of many geoms."""


_BLOCKS_OF_PARTS = 8  # of 128 threads on a multiprocessor; a few registers of paths of tendons spill


@cache
def in_parts(poses: Kernel) -> Kernel:
    """A kernel of kinematics that has matrices, frames of geoms and inertias in scratch one after another.

    The frames of geoms come right before what reads them. A multiprocessor then has room for as many worlds of large
    batches as it has threads for.
    """
    frames = GEOM_FRAMES_OF_MANY if KINEMATICS_OF_MANY in poses.stages else GEOM_FRAMES
    reader = next((stage for stage in poses.stages if "geom_xpos" in stage.reads), None)
    first = BODY_PARTS if reader else (*BODY_PARTS[:1], frames, *BODY_PARTS[1:])
    parts = {KINEMATICS: first, KINEMATICS_OF_MANY: first, COM_POS: COM_POS_PARTS}
    parts |= {reader: (frames, reader)} if reader else {}
    stages = tuple(part for stage in poses.stages for part in parts.get(stage, (stage,)))
    counts = not {COLLISION, COLLISION_GENERAL}.isdisjoint(stages)
    least = poses.min_blocks_per_multiprocessor
    return replace(
        poses,
        name=f"{poses.name}_in_parts",
        stages=stages,
        preload=frozenset() if counts else poses.preload,  # counting would keep qpos in scratch to its end
        min_blocks_per_multiprocessor=least if counts else max(least, _BLOCKS_OF_PARTS),
        constants=(WITHOUT_COLUMNS,),
    )


POSES_IN_PARTS = tuple(map(in_parts, (POSES, POSES_GENERAL, POSES_SITELESS)))
MANY_IN_PARTS = tuple(map(in_parts, POSES_OF_MANY))
POSITION_IN_PARTS = tuple(map(in_parts, (POSITION, POSITION_GENERAL, POSITION_SITELESS)))
"""The same for every kernel of kinematics."""


def position_in_two(general: bool, sites: bool = True) -> tuple[Kernel, Kernel]:
    """Guard and kinematics, then contact counts, for which `smooth` need not wait."""
    return poses(general, sites), single(COLLISION_GENERAL if general else COLLISION)


def post(general_rows: bool) -> Kernel:
    """The kernel of external forces on bodies. Models without general rows use one without the code for these."""
    return POST_GENERAL if general_rows else POST


def is_fused(integrator: str, solver: str) -> bool:
    """Whether the integrator is fused into the kernels `finish` and `advance`.

    Only those of common models are, since fusing all would take a kernel for each pair of solver and integrator.
    """
    return solver == SOLVE_NEWTON_UNILATERAL.name and integrator in FUSED_INTEGRATORS


def constraint(solver: str) -> Stage:
    """The stage that makes constraint rows for a solver.

    The simple one makes rows of limits, of frictionless contacts, and of pyramidal contacts of dimension 3 only.
    """
    return CONSTRAINT if solver == SOLVE_NEWTON_UNILATERAL.name else CONSTRAINT_GENERAL


@cache
def finish(integrator: str, solver: str, arena: bool) -> Kernel:
    """The kernel for worlds with constraint rows: rows, solver, and the integrator if it is fused.

    Args:
        integrator: name of the integrator, or empty to integrate nothing.
        solver: name of the solver's stage.
        arena: whether rows are stored in the arena, not in scratch.
    """
    fused = is_fused(integrator, solver)
    stages = (constraint(solver), SOLVERS[solver], *((INTEGRATORS[integrator],) if fused else ()))
    what = (
        (solver.removeprefix("solve_"),)
        if solver != SOLVE_NEWTON_UNILATERAL.name
        else (integrator if fused else "forward",)
    )
    name = "_".join(("finish", *what, *(("arena",) if arena else ())))
    in_memory = _ROWS if arena else _ROWS_READ_ONCE if solver == SOLVE_PGS.name else frozenset[str]()
    return Kernel(name, stages, direct=_CONTACTS | in_memory, min_blocks_per_multiprocessor=6)


@cache
def advance(integrator: str, solver: str) -> Kernel:
    """The kernel for worlds without constraint rows: acceleration, and the integrator if it is fused."""
    fused = is_fused(integrator, solver)
    stages = (UNCONSTRAINED, *((INTEGRATORS[integrator],) if fused else ()))
    return Kernel(f"advance_{integrator if fused else 'forward'}", stages, direct=_CONTACTS)


EULER_FACTOR_KERNEL = single(EULER_FACTOR)
EULER_FACTORED_KERNEL = Kernel("euler_factored", (EULER_FACTORED,), preload=frozenset({"damped_branches"}))
"""Euler's method in two kernels, of which the first runs beside the solver, for matrices along branches."""


def integrate(integrator: str, solver: str) -> tuple[Kernel, ...]:
    """The kernel of the integrator alone; none if the integrator is fused or there is nothing to integrate."""
    return () if not integrator or is_fused(integrator, solver) else (single(INTEGRATORS[integrator]),)


@cache
def step_kernels(integrator: str, solver: str = SOLVE_NEWTON_UNILATERAL.name) -> tuple[Kernel, ...]:
    """Every kernel that a step may launch for a model with this integrator and solver and without islands.

    With an empty integrator these are the kernels of `forward()`. Kernels of the broadphase and noslip are left out.
    """
    return (
        POSITION,
        POSITION_IN_SIXTEEN,
        POSITION_GENERAL,
        POSES,
        POSES_GENERAL,
        POSITION_SITELESS,
        POSES_SITELESS,
        POSES_SITES,
        *POSES_OF_MANY,
        *POSES_IN_PARTS,
        *MANY_IN_PARTS,
        *POSITION_IN_PARTS,
        TENDONS_BY_BLOCK,
        *SEARCHES,
        LIST_BY_BLOCK,
        LISTING_BY_CLUSTERS,
        CLUSTERS_BY_BLOCK,
        LIST_NEAR,
        COUNT_NEAR,
        DISTANCE_IN_EIGHT,
        DEPTH_BY_WARP,
        TOUCH_IN_EIGHT,
        *TOUCHES_OF_MANY,
        COUNTING_BY_WARP,
        COUNTING_IN_EIGHT,
        *PRISM_KERNELS,
        INERTIA_BY_BLOCK,
        FORCES_BESIDE,
        ACTUATORS_BY_BLOCK,
        SMOOTH,
        SMOOTH_FLUID,
        SMOOTH_GENERAL,
        SMOOTH_DRIVEN,
        SMOOTH_ADHESION,
        INERTIA,
        FORCES,
        FORCES_FLUID,
        INERTIA_GENERAL,
        FORCES_GENERAL,
        FORCES_DRIVEN,
        SCAN_KERNEL,
        *NARROW.values(),
        NARROW_LIGHT,
        NARROW_OWN_ADDRESSES,
        finish(integrator, solver, False),
        finish(integrator, solver, True),
        advance(integrator, solver),
        *((ACTIVATION_KERNEL,) if integrator else ()),
        *ON_DEMAND,
        POST,
        POST_GENERAL,
        TENDON_POST,
        SENSE_MOTION,
        SENSE_DISTANCE,
        SENSE_FORCES,
        *integrate(integrator, solver),
        *((DIAGONAL_KERNEL,) if integrator == "implicitfast" else ()),
    )
