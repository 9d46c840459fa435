"""The state table: every field that a stage may read or write, under MuJoCo's name where MuJoCo has one.

Every field belongs to one of these spaces, which determine its layout. An arena is an array for entries whose number
differs between worlds; those of one world are contiguous.

- `world`: `field[world][...]`, one entry per world, so that consecutive lanes of a world read consecutive words;
- `contact`: an arena of contacts, world by world; the contacts of a world start at `con_adr[world]`;
- `row`: an arena of constraint rows, world by world, of the worlds that do not have them in their solver's scratch
  alone; the rows of a world start at `efc_adr[world]`;
- `jacobian`: the same for fields as wide as the Jacobian, which more worlds may have there; they start at
  `efc_J_adr[world]`;
- `column`: `field[column][world of the shard]`, one region per shard, for the counts that are scanned across worlds;
- `shard`: one entry per shard;
- `queue`: like `block`, but the worlds of a shard share their parts, which are one array;
- `block`: like `world`, but not public, and only for worlds that are solved island by island or, where a size of the
  model says so, for others;
- `island_column` and `island_shard`: like `column` and `shard`, for ISLAND_COLUMNS;
- `progress`: like `shard`, for PROGRESS;
- `island`, `island_M`, `island_J`, `island_H`: arenas of a shard's islands, of their inertia, of their Jacobians and of
  their Hessians, the latter three in pieces of four words; the record of an island holds its addresses;
- `pair_column` and `pair_shard`: like `column` and `shard`, for PAIR_COLUMNS;
- `pair`, `slot`, `slice`: arenas of the geom pairs that the broadphase finds, of slots for their contacts, and of
  slices of pairs; those of a world start at `pair_adr[world]`, `slot_adr[world]` and `slice_adr[world]`.
"""

from __future__ import annotations

from collections.abc import Mapping

from simengine.model.pair_types import PAIR_TYPES
from simengine.model.table import resolve
from simengine.state.field import Field
from simengine.state.field import of_block as _b
from simengine.state.field import of_world as _w
from simengine.state.island_fields import COLUMN_OF_ARENA, ISLAND_COLUMNS, ISLAND_FIELDS, LARGE_ISLAND_FIELDS
from simengine.state.pair_fields import PAIR_COLUMNS, PAIR_FIELDS

# Size classes of the solver: the most constraint rows of a world in each class. One more class has no bound; its rows
# are stored in the arena instead of scratch.
ROW_CLASSES: tuple[int, ...] = (0, 8, 16, 32, 64, 128)
NUM_CLASSES = len(ROW_CLASSES) + 1
CLASS_COLUMNS: tuple[str, ...] = (*(f"rows_{bound}" for bound in ROW_CLASSES), "rows_more")  # among COLUMNS

# Columns that `collision` counts per world and `scan` adds up. In the first two, the entries are numbers. In the others
# they are 0 or 1, and the scan gives the list of worlds with a 1. `rows_bounded` is 1 in all classes with a bound.
COLUMNS: tuple[str, ...] = (
    "ncon",
    "nefc",
    *PAIR_TYPES,
    *CLASS_COLUMNS,
    "rows_bounded",
    "bad",
)
NUM_COLUMNS = len(COLUMNS)
NUM_SUMS = 2

# Totals of a shard: the sum of each column, and the entries that each arena of rows needs.
TOTALS: tuple[str, ...] = (*COLUMNS, "row", "jacobian")
NUM_TOTALS = len(TOTALS)
ROW_SPACES: tuple[str, ...] = ("row", "jacobian")
WORLD_ARENAS: tuple[str, ...] = ("contact", *ROW_SPACES)  # arenas that every model has, in the order of PROGRESS
TOTAL_OF: dict[str, str] = {"contact": "ncon", **{space: space for space in ROW_SPACES}}  # entries that each needs

# Progress of a shard whose steps are issued before their counts are known: whether its latest contacts and rows exceed
# the capacity of their arenas, and how many evaluations did not; and how many did not exceed those of each arena of
# islands. Where one of these is too small, rows are full, too.
PROGRESS: tuple[str, ...] = (
    *("contacts_full", "rows_full", "jacobians_full", "contacts_passed", "rows_passed", "jacobians_passed"),
    *("islands_passed", "island_M_passed", "island_J_passed", "island_H_passed"),
)

# The columns of each space that has columns.
COLUMNS_OF: dict[str, tuple[str, ...]] = {
    **{"column": COLUMNS, "shard": TOTALS},
    **dict.fromkeys(("pair_column", "pair_shard"), PAIR_COLUMNS),
    "progress": PROGRESS,
    **dict.fromkeys(("island_column", "island_shard"), ISLAND_COLUMNS),
}
ISLAND_ARENAS: tuple[str, ...] = tuple(COLUMN_OF_ARENA)
PAIR_ARENAS: tuple[str, ...] = ("pair", "slot", "slice")

# The field with the address of a world's part of an arena, by space.
ADDRESS_OF: dict[str, str] = {
    **{"contact": "con_adr", "row": "efc_adr", "jacobian": "efc_J_adr"},
    **{space: f"{space}_adr" for space in PAIR_ARENAS},
}

# The stages that flag a world, in the order of the codes in `world_status`; zero is healthy.
WORLD_STATUS: tuple[str, ...] = ("healthy", "input", "acceleration", "solve", "integrate")


# Fields of dofs, rows and contacts that a solver reads or writes; islands have their own copies.
ISLAND_DOF_FIELDS = ("qfrc_smooth", "qacc_smooth", "qacc_warmstart", "qacc", "qfrc_constraint")
ISLAND_ROW_FIELDS = (
    *("efc_D", "efc_aref", "efc_type", "efc_id", "efc_frictionloss", "efc_force", "efc_jar", "efc_jv", "efc_weight"),
    *("efc_b", "efc_diagAR", "efc_before", "efc_order"),
)
ISLAND_CONTACT_FIELDS = ("contact_efc_address",)

# Parameters of each contact if there is no table of candidate pairs; they replace its fields `cand_*`.
CONTACT_PARAMETERS = tuple(
    f"contact_{name}"
    for name in ("geom1", "geom2", "condim", "rows", "friction", "solref", "solreffriction", "solimp", "margin")
)

_FIELDS: tuple[Field, ...] = (
    # integration state
    _w("qpos", "nq", doc="coordinates [m, rad, quaternions]"),
    _w("qvel", "nv", doc="velocities [m/s, rad/s]"),
    _w("act", "na", doc="activations"),
    _w("ctrl", "nu", doc="controls"),
    _w("qfrc_applied", "nv", doc="applied generalised forces [N, N m]"),
    _w("xfrc_applied", "nbody", 6, doc="applied Cartesian force and torque at the body's com, world frame [N, N m]"),
    _w("mocap_pos", "nmocap", 3, doc="positions of the mocap bodies, world frame [m]"),
    _w("mocap_quat", "nmocap", 4, doc="orientations of the mocap bodies"),
    _w("eq_active", "neq", doc="is the equality constraint active, 0 or 1", kind="int"),
    _w("qacc_warmstart", "nv", doc="solver's starting point [m/s^2, rad/s^2]"),
    _w("nstep", doc="steps since the world's reset; time is nstep times the timestep", kind="int"),
    _w("world_status", doc="index into WORLD_STATUS; a world that is not healthy is frozen", kind="int"),
    # position
    _w("xpos", "nbody", 3, doc="body frame position, world frame [m]"),
    _w("xquat", "nbody", 4, doc="body frame orientation"),
    _w("xmat", "nbody", 9, doc="body frame orientation as a matrix"),
    _w("xipos", "nbody", 3, doc="centre of mass of the body, world frame [m]"),
    _w("ximat", "nbody", 9, doc="inertial frame orientation as a matrix"),
    _w("xanchor", "njnt", 3, doc="joint anchor, world frame [m]"),
    _w("xaxis", "njnt", 3, doc="joint axis, world frame"),
    _w("geom_xpos", "ngeom", 3, doc="geom position, world frame [m]"),
    _w("geom_xmat", "ngeom", 9, doc="geom orientation as a matrix"),
    _w("site_xpos", "nsite", 3, doc="site position, world frame [m]"),
    _w("site_xmat", "nsite", 9, doc="site orientation as a matrix"),
    _w("subtree_com", "nbody", 3, doc="centre of mass of the subtree, world frame [m]"),
    _w("cinert", "nbody", 10, doc="com-based body inertia and mass [kg m^2, kg m, kg]"),
    _w("cdof", "nv", 6, doc="com-based motion axis of each dof, rotation then translation"),
    _w("ten_length", "ntendon", doc="tendon length [m or a sum of m and rad]"),
    _w("ten_J", "ntendon", "nv", doc="derivative of the tendon lengths by the velocities"),
    _w("crb", "nbody", 10, doc="com-based composite inertia and mass"),
    _w("qM", "nv", "nv", doc="joint-space inertia matrix, dense and symmetric"),
    _w("qLD", "nv", "nv", doc="lower Cholesky factor of qM (not MuJoCo's L'DL), zero above the diagonal"),
    # velocity and forces
    _w("cvel", "nbody", 6, doc="com-based body velocity, rotation then translation [rad/s, m/s]"),
    _w("cdof_dot", "nv", 6, doc="time derivative of cdof"),
    _w("qfrc_fluid", "nv", doc="fluid forces [N, N m]; zero in models without a fluid"),
    _w("qfrc_gravcomp", "nv", doc="gravity compensation [N, N m], which is part of qfrc_passive or qfrc_actuator"),
    _w("qfrc_passive", "nv", doc="spring, damper and fluid forces [N, N m]"),
    _w("qfrc_bias", "nv", doc="Coriolis, centrifugal and gravitational forces [N, N m]"),
    _w("ten_velocity", "ntendon", doc="velocity of the tendon length"),
    _w("actuator_length", "nu", doc="actuator length"),
    _w("actuator_velocity", "nu", doc="actuator velocity"),
    _w("actuator_moment", "nu", "nv", doc="generalised force per unit of actuator force"),
    _w("act_dot", "na", doc="rate of the activations"),
    _w("actuator_force", "nu", doc="actuator forces in actuation space"),
    _w("qfrc_actuator", "nv", doc="actuator forces [N, N m]"),
    _w("qfrc_smooth", "nv", doc="all forces except constraint forces [N, N m]"),
    _w("qacc_smooth", "nv", doc="acceleration without constraints [m/s^2, rad/s^2]"),
    _w("energy", 2, doc="potential and kinetic energy [J]"),
    # sensors and fields that only they need, from the first evaluation of a step
    _w("subtree_linvel", "nbody", 3, doc="velocity of the subtree's centre of mass, world frame [m/s]"),
    _w("subtree_angmom", "nbody", 3, doc="angular momentum about the subtree's centre of mass [kg m^2/s]"),
    _w("cacc_bias", "nbody", 6, doc="cacc without qacc"),
    _w("cacc", "nbody", 6, doc="com-based body acceleration, gravity included as that of the world [rad/s^2, m/s^2]"),
    _w("cfrc_int", "nbody", 6, doc="com-based force of the parent on each body, torque then force [N m, N]"),
    _w("sensordata", "nsensordata", doc="readings of the sensors, each in its own unit"),
    # collision and counting
    _b("near_cand", "nnear", doc="candidate pairs whose bounds overlap, in order, see contact.cuh", kind="int"),
    _b("near_adr", "nnear+1", doc="first contact of each of them within its world, and after the last", kind="int"),
    _b("search_near", "nsearch", doc="numbers of those that need a search", kind="int"),
    _b("search_found", "nsearch", doc="contacts that their search found, plus 256 times their rows", kind="int"),
    _b("search_state", "nkept", doc="what is known of the cores of the first of them, see convex.cu", kind="int"),
    Field("search_queue", "int", ("nkept+12",), "queue", "those whose cores overlap or are near, see searches.cuh"),
    _b("search_simplex", "nkept", 8, doc="support points, directions, weights and normal of their searches, 32 each"),
    _b("kept_contact", "nkept", 7, doc="distance, position and normal of contacts of the first of them, four each [m]"),
    _b("kept_prism", "nkeptprism", 7, doc="the same of the first contacts with height fields, on the host"),
    _b("prism_of", "nprism", 2, doc="near pair of each prism that may touch, and its number in its field", kind="int"),
    _b("prism_tally", 2, doc="their number, and the first near pair whose prisms are not among them", kind="int"),
    _b("prism_state", "nprism", doc="what is known of each of them, see prism_search.cuh", kind="int"),
    _b("prism_place", "nprism", doc="number of its contact within the pair, -1 if there is none", kind="int"),
    _b("prism_simplex", "nprism", 32, doc="support points, directions, weights and normal of its search"),
    _b("prism_contact", "nprism", 7, doc="distance, position and normal of its contact [m]"),
    Field("prism_queue", "int", ("nprism+2", 2), "queue", "those whose cores overlap or are near, as of searches"),
    _b("pair_tally", 3, doc="near pairs, those that need a search, and rows of the others", kind="int"),
    _w("ncon", doc="contacts of the world", kind="int"),
    _w("nefc", doc="constraint rows of the world", kind="int"),
    Field("counts", "int", (), "column", "the numbers that COLUMNS names, per world"),
    _w("con_adr", doc="first contact of the world in the contact arena", kind="int"),
    _w("efc_adr", doc="first row of the world in the row arena", kind="int"),
    _w("efc_J_adr", doc="first row of the world in the arena of rows of the Jacobian", kind="int"),
    Field("lists", "int", (), "column", "worlds with a one in each column, in ascending order"),
    Field("totals", "int", (NUM_TOTALS,), "shard", "the numbers that TOTALS names, on the device"),
    Field("totals_host", "int", (NUM_TOTALS,), "shard", "the same, in memory the host can read"),
    Field("progress", "int", (len(PROGRESS),), "progress", "the numbers that PROGRESS names, on the device"),
    Field("progress_host", "int", (len(PROGRESS),), "progress", "the same, in memory the host can read"),
    # contacts
    Field("contact_dist", "real", (), "contact", "distance, negative in penetration [m]"),
    Field("contact_pos", "real", (3,), "contact", "midpoint between the surfaces, world frame [m]"),
    Field("contact_frame", "real", (9,), "contact", "rows: normal from geom1 to geom2, two tangents"),
    Field("contact_cand", "int", (), "contact", "candidate pair"),
    Field("contact_efc_address", "int", (), "contact", "first row within the world, -1 in the gap"),
    # parameters of contacts whose pairs are found in every step; contact_cand is then the contact's own index
    Field("contact_geom1", "int", (), "contact", "geom with the lower type"),
    Field("contact_geom2", "int", (), "contact", "the other geom"),
    Field("contact_condim", "int", (), "contact", "contact dimension"),
    Field("contact_rows", "int", (), "contact", "constraint rows, within the margin"),
    Field("contact_friction", "real", (5,), "contact", "combined friction"),
    Field("contact_solref", "real", (2,), "contact", "combined solver reference"),
    Field(
        "contact_solreffriction", "real", (2,), "contact", "solver reference of a cone's tangents, 0 for the normal's"
    ),
    Field("contact_solimp", "real", (5,), "contact", "combined solver impedance"),
    Field("contact_margin", "real", (), "contact", "distance at which forces begin [m]"),
    # constraint rows
    Field("efc_J", "real", ("nvp",), "jacobian", "constraint Jacobian, rows padded to a multiple of four"),
    Field("efc_pos", "real", (), "row", "constraint position [m, rad]"),
    Field("efc_margin", "real", (), "row", "margin at which the row acts [m, rad]"),
    Field("efc_D", "real", (), "row", "inverse regularisation: constraint mass"),
    Field("efc_aref", "real", (), "row", "reference acceleration"),
    Field("efc_type", "int", (), "row", "MuJoCo's mjtConstraint"),
    Field("efc_id", "int", (), "row", "equality, dof, joint or tendon of the row, or contact within the world"),
    Field("efc_frictionloss", "real", (), "row", "largest force of a friction row, 0 in others [N, N m]"),
    Field("efc_force", "real", (), "row", "constraint force"),
    Field("efc_jar", "real", (), "row", "J qacc - aref, the solver's working residual"),
    Field("efc_jv", "real", (), "row", "J times the solver's search direction"),
    Field("efc_weight", "real", (6,), "row", "second derivatives of the solver's cost by the rows of a cone"),
    Field("efc_Y", "real", ("nvp",), "jacobian", "PGS: J inv(L'), with qM = L L'; rows padded like those of efc_J"),
    Field("efc_b", "real", (), "row", "PGS: J qacc_smooth - aref, the residual without constraint forces"),
    Field("efc_diagAR", "real", (), "row", "PGS: diagonal of J inv(M) J' + R"),
    Field("efc_before", "real", (), "row", "PGS: force before the latest sweep; before the first, the row's cost"),
    Field(
        "efc_island",
        "int",
        (),
        "row",
        "PGS: lowest kinematic tree of the row's island; ntree + 1 for rows of a cone after its first",
    ),
    Field("efc_order", "int", (), "row", "PGS: rows by island, in the order of its latest sweep"),
    # solution
    _b("damped_branches", "nbranchword", doc="factor of the inertia with implicit damping, see branch_rows.cuh"),
    _w("qacc", "nv", doc="acceleration [m/s^2, rad/s^2]; after an RK4 step the weighted mean that was integrated"),
    _w("qfrc_constraint", "nv", doc="constraint forces [N, N m]"),
    _w("solver_niter", doc="iterations of the solver", kind="int"),
    _w("cfrc_ext", "nbody", 6, doc="com-based external and contact force on each body, torque then force [N m, N]"),
    *ISLAND_FIELDS,
    *PAIR_FIELDS,
    *LARGE_ISLAND_FIELDS,
    # Runge-Kutta
    _w("rk_qpos", "nq", doc="coordinates at the start of the step"),
    _w("rk_qvel", "nv", doc="velocities at the start of the step"),
    _w("rk_act", "na", doc="activations at the start of the step"),
    _w("rk_rate", "nv", doc="rate of the displacement from the start of the step at the latest evaluation"),
    _w("rk_dqpos", "nv", doc="weighted sum of the stages' rates"),
    _w("rk_dqvel", "nv", doc="weighted sum of the stages' accelerations"),
    _w("rk_dact", "na", doc="weighted sum of the stages' rates of the activations"),
)


def _of_island(field: Field) -> Field:
    """The copy of a field in the order of the islands of a world."""
    space = "block" if field.space == "world" else field.space
    numbers = ", rows numbered within the island" if field.space == "contact" else " in the order of the islands"
    return field._replace(name=f"island_{field.name}", space=space, doc=field.name + numbers)


FIELDS: tuple[Field, ...] = (
    *_FIELDS,
    *(_of_island(f) for f in _FIELDS if f.name in ISLAND_DOF_FIELDS + ISLAND_ROW_FIELDS + ISLAND_CONTACT_FIELDS),
)

FIELD: dict[str, Field] = {f.name: f for f in FIELDS}

# Fields that MuJoCo takes from the first evaluation of a step, even if the integrator makes several.
SENSED: frozenset[str] = frozenset({"subtree_linvel", "subtree_angmom", "cacc_bias", "cacc", "cfrc_int", "sensordata"})

# The fields that carry a simulation from step to step, and those that a user may set.
INTEGRATION_STATE: tuple[str, ...] = (
    "qpos",
    "qvel",
    "act",
    "ctrl",
    "qfrc_applied",
    "xfrc_applied",
    "mocap_pos",
    "mocap_quat",
    "eq_active",
    "qacc_warmstart",
    "nstep",
    "world_status",
)


def padded(n: int) -> int:
    """`n` rounded up to a multiple of four, the row stride of `efc_J`."""
    return (n + 3) & ~3


def entry_shape(field: Field, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """Shape of one entry (one world, contact or row) of a field for a model with these sizes."""
    known = {**sizes, "nvp": padded(sizes["nv"])} if "nvp" in field.dims else sizes
    return resolve(field.dims, known)
