"""The kernels over worlds that steps launch, most of which fuse several stages."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from simengine.backends.base import LANES_OF_A_BLOCK
from simengine.kernels.kernel import Kernel
from simengine.model.pair_types import PAIRS
from simengine.physics.actuation.activation import ACTIVATION
from simengine.physics.actuation.transmission import TRANSMISSION
from simengine.physics.collision.collision import (
    COLLISION,
    COLLISION_COUNT,
    COLLISION_DEPTH,
    COLLISION_DISTANCE,
    COLLISION_GENERAL,
    COLLISION_LIST,
    COLLISION_NEAR,
    COLLISION_TOUCH,
    LIST_CULLED,
)
from simengine.physics.collision.narrowphase import NARROWPHASE
from simengine.physics.collision.prisms.prisms import (
    PRISM_COUNT,
    PRISM_DEPTH,
    PRISM_DISTANCE,
    PRISM_LIST,
    PRISM_STORE,
    PRISM_TOUCH,
)
from simengine.physics.collision.scan import SCAN
from simengine.physics.constraints.constraint import CONSTRAINT
from simengine.physics.constraints.constraint_general import CONSTRAINT_GENERAL
from simengine.physics.dynamics.unconstrained import UNCONSTRAINED
from simengine.physics.kinematics.com_pos import COM_POS
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
from simengine.plan.smooth_kernels import (
    ACTUATORS_BY_BLOCK,
    FORCES,
    FORCES_DRIVEN,
    FORCES_FLUID,
    FORCES_GENERAL,
    INERTIA,
    INERTIA_GENERAL,
    SMOOTH,
    SMOOTH_ADHESION,
    SMOOTH_DRIVEN,
    SMOOTH_FLUID,
    SMOOTH_GENERAL,
)
from simengine.plan.stages import INTEGRATORS, SOLVERS, single
from simengine.state.fields import FIELDS

FUSED_INTEGRATORS = ("euler", "rk4")

_COUNTS = frozenset(
    {
        *("near_cand", "near_adr", "search_near", "search_found", "kept_contact", "kept_prism", "pair_tally"),
        *("ncon", "nefc", "counts"),
    }
)
_ROWS = frozenset(f.name for f in FIELDS if f.space == "row")
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
SCAN_KERNEL = Kernel("scan", (SCAN,), unit="column")
NARROW: dict[str, Kernel] = {name: Kernel(name, (stage,)) for name, stage in NARROWPHASE.items()}
LIGHT = tuple(pair.name for pair in PAIRS if not pair.heavy)
NARROW_IN_EIGHT: dict[str, Kernel] = {
    pair.name: replace(NARROW[pair.name], name=f"{pair.name}_in_eight", own_lanes=8)
    for pair in PAIRS
    if not pair.shared and pair.name != "convex"  # whose contacts are kept from counting
}
"""The same with eight lanes for each world, of which few have a pair of the type: four worlds share a warp."""
NARROW_LIGHT = Kernel("narrow_light", tuple(NARROWPHASE[name] for name in LIGHT))
"""All light pair types in one kernel, for shards so small that a launch costs more than testing for each type."""
NARROW_OWN_ADDRESSES = replace(NARROW_LIGHT, name="narrow_own_addresses", own_addresses=True)
"""The same without waiting for the scan, for still smaller shards: each world adds up the counts of all worlds."""
ACTIVATION_KERNEL = Kernel("activation", (ACTIVATION,))
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


def position_in_two(general: bool, sites: bool = True) -> tuple[Kernel, Kernel]:
    """Guard and kinematics, then contact counts, for which `smooth` need not wait."""
    return poses(general, sites), single(COLLISION_GENERAL if general else COLLISION)


SEARCHES = (
    single(COLLISION_LIST),
    replace(single(COLLISION_DISTANCE), own_lanes=1, min_blocks_per_multiprocessor=3, constants=(("ALL_INLINE", 1),)),
    replace(
        single(COLLISION_DEPTH), queued=3, own_lanes=16, min_blocks_per_multiprocessor=4, constants=(("ALL_INLINE", 1),)
    ),
    replace(
        single(COLLISION_TOUCH),
        queued=4,
        own_lanes=1,
        min_blocks_per_multiprocessor=3,
        constants=(("REMEMBERS_VERTICES", 1),),
    ),
    single(COLLISION_COUNT),
)
"""Contact counts as five kernels. The second has several groups of lanes for each world, and those of the third and
fourth take searches of any world from the queue that the second fills."""


_OF_PRISMS = (("SEARCHES_PRISMS", 1),)
PRISMS = (
    single(PRISM_LIST),
    replace(
        single(PRISM_DISTANCE),
        own_lanes=1,
        min_blocks_per_multiprocessor=3,
        constants=(*_OF_PRISMS, ("ALL_INLINE", 1)),
    ),
    replace(
        single(PRISM_DEPTH),
        queued=1,
        own_lanes=16,
        min_blocks_per_multiprocessor=4,
        constants=(*_OF_PRISMS, ("ALL_INLINE", 1)),
    ),
    replace(
        single(PRISM_TOUCH),
        queued=2,
        own_lanes=1,
        min_blocks_per_multiprocessor=3,
        constants=(*_OF_PRISMS, ("REMEMBERS_VERTICES", 1)),
    ),
    replace(single(PRISM_COUNT), min_blocks_per_multiprocessor=6),
)
"""Contacts with height fields, like `SEARCHES`, as five kernels for GPUs. The first lists prisms of the near pairs, and
the last counts contacts. In between, lanes have prisms of any world."""

PRISM_DEPTH_BY_WARP = replace(PRISMS[2], name="prism_depth_by_warp", own_lanes=32)
"""The third of them for few worlds."""

PRISM_TOUCH_IN_EIGHT = replace(PRISMS[3], name="prism_touch_in_eight", own_lanes=8)
"""The fourth of them for very few worlds."""

_OF_LONG = (*PRISMS[3].constants, ("SHORT_QUEUE", 8))  # eight lanes and one take as long for some 10,000 prisms
PRISM_TOUCHES_OF_MANY = (
    replace(PRISM_TOUCH_IN_EIGHT, name="prism_touch_short", constants=(*_OF_LONG, ("TAKES_SHORT_QUEUES", 1))),
    replace(PRISMS[3], name="prism_touch_long", constants=(*_OF_LONG, ("TAKES_LONG_QUEUES", 1))),
)
"""The fourth of them for more worlds, as two: one for short queues, and one for the others."""

STORE_PRISMS = Kernel("hfield_of_prisms", (PRISM_STORE,), min_blocks_per_multiprocessor=6)
"""The narrowphase that follows them."""

PRISM_KERNELS = (*PRISMS, PRISM_DEPTH_BY_WARP, PRISM_TOUCH_IN_EIGHT, *PRISM_TOUCHES_OF_MANY, STORE_PRISMS)
"""All of these."""

LIST_BY_BLOCK = replace(
    single(COLLISION_LIST), name="list_by_block", own_lanes=LANES_OF_A_BLOCK, min_blocks_per_multiprocessor=4
)
"""The first of them for few worlds of very many candidate pairs, of which a block lists those that are near."""

LISTING_BY_CLUSTERS = replace(single(LIST_CULLED), name="list_culled", own_lanes=32)
"""The first of them for models whose geoms are in clusters, by a warp, which has the boxes of a world and a bit for
each pair in shared memory. With the last of them it also counts contacts where no pair needs a search."""

CLUSTERS_BY_BLOCK = replace(
    LISTING_BY_CLUSTERS, name="list_culled_by_block", own_lanes=LANES_OF_A_BLOCK, min_blocks_per_multiprocessor=4
)
"""The same by a block, for few worlds."""

LIST_NEAR = replace(SEARCHES[0], name="list_near", constants=(("COUNTS_NEAR", 0),))
"""The first of them without the contacts of pairs that need no search."""

COUNT_NEAR = replace(single(COLLISION_NEAR), name="count_near", own_lanes=1, min_blocks_per_multiprocessor=4)
"""The kernel that counts these in large batches, in which lanes have pairs of any world."""

DEPTH_BY_WARP = replace(SEARCHES[2], name="depth_by_warp", own_lanes=32)
"""The third of them for few worlds, with a whole warp for each pair, since few of its warps would have another pair."""

TOUCH_IN_EIGHT = replace(SEARCHES[3], name="touch_in_eight", own_lanes=8)
"""The fourth of them for very few worlds: a warp has four searches instead of 32, which often take different ways."""

TOUCHES_OF_MANY = (
    replace(TOUCH_IN_EIGHT, name="touch_short", constants=(*TOUCH_IN_EIGHT.constants, ("TAKES_SHORT_QUEUES", 1))),
    replace(SEARCHES[3], name="touch_long", constants=(*SEARCHES[3].constants, ("TAKES_LONG_QUEUES", 1))),
)
"""The fourth of them for more worlds, as two: one for queues in which few searches wait, and one for the others. One of
them has nothing to do."""


COUNTING_BY_WARP = replace(single(COLLISION_GENERAL), name="counting_by_warp", own_lanes=32)
"""Contact counts of a world by a whole warp, for models of few dofs and many pairs."""


COUNTING_IN_EIGHT = replace(single(COLLISION_GENERAL), name="counting_in_eight", own_lanes=8)
"""The same by eight lanes, for many worlds of few pairs, of which very few are near."""


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
        POSITION_GENERAL,
        POSES,
        POSES_GENERAL,
        POSITION_SITELESS,
        POSES_SITELESS,
        POSES_SITES,
        *POSES_OF_MANY,
        TENDONS_BY_BLOCK,
        *SEARCHES,
        LIST_BY_BLOCK,
        LISTING_BY_CLUSTERS,
        CLUSTERS_BY_BLOCK,
        LIST_NEAR,
        COUNT_NEAR,
        DEPTH_BY_WARP,
        TOUCH_IN_EIGHT,
        *TOUCHES_OF_MANY,
        COUNTING_BY_WARP,
        COUNTING_IN_EIGHT,
        *PRISM_KERNELS,
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
    )
