"""The state table: every field that a stage may read or write, under MuJoCo's name where MuJoCo has one.

Every field belongs to one of these spaces, which determine its layout. An arena is an array for entries whose number
differs between worlds; those of one world are contiguous.

- `world`: `field[world][...]`, one entry per world, so that consecutive lanes of a world read consecutive words;
- `contact`: an arena of contacts, world by world; the contacts of a world start at `con_adr[world]`;
- `row`: an arena of constraint rows, world by world; the rows of a world start at `efc_adr[world]`;
- `column`: `field[column][world of the shard]`, one region per shard, for the counts that are scanned across worlds;
- `shard`: one entry per shard;
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
from typing import NamedTuple

from simengine.model.table import PAIR_TYPES, resolve

# Size classes of the solver: the most constraint rows of a world in each class. One more class has no bound; its rows
# are stored in the arena instead of scratch.
ROW_CLASSES: tuple[int, ...] = (0, 8, 16, 32, 64, 128)
NUM_CLASSES = len(ROW_CLASSES) + 1

# Columns that `collision` counts per world and `scan` adds up. In the first two, the entries are numbers, and the scan
# gives addresses. In the others they are 0 or 1, and the scan gives the list of worlds with a 1. `rows_bounded` is 1 in
# all classes with a bound.
COLUMNS: tuple[str, ...] = (
    "ncon",
    "nefc",
    *PAIR_TYPES,
    *(f"rows_{bound}" for bound in ROW_CLASSES),
    "rows_more",
    "rows_bounded",
    "bad",
)
NUM_COLUMNS = len(COLUMNS)
NUM_SUMS = 2

# Islands are solved in size classes by their dofs: dense problems up to each bound; dense problems with more dofs; and
# large and huge islands, which have sparse matrices and differ in their number of lanes. Columns that `islands` counts
# per
# world: the islands of each class, and the pieces of four words of dense inertia matrices, of Jacobians, and of the
# Hessians of large islands.
ISLAND_CLASSES: tuple[int, ...] = (8, 16, 32)
LARGE_ISLANDS, HUGE_ISLANDS = len(ISLAND_CLASSES) + 1, len(ISLAND_CLASSES) + 2
NUM_ISLAND_CLASSES = len(ISLAND_CLASSES) + 3
MOST_LARGE_DOFS = 640
"""Most dofs of an island in the class LARGE_ISLANDS; larger ones are in HUGE_ISLANDS."""
ISLAND_COLUMNS: tuple[str, ...] = (
    *(f"islands_{bound}" for bound in ISLAND_CLASSES),
    *("islands_more", "islands_large", "islands_huge", "island_M", "island_J", "island_H"),
)
ISLAND_RECORD, RECORD_ROWS, RECORD_BLOCKS = 12, 2, 9
"""Words of an island's record, and the indices of its numbers of rows and of blocks."""

# If pairs are found in every step: columns of numbers that `broadphase` counts per world. `pairs` are entries in the
# arena, PAIR_SPARE of which belong to no pair; a slice is a part of a world's pairs.
PAIR_COLUMNS: tuple[str, ...] = ("pairs", "slots", "slices")
PAIR_SPARE = 16
PAIRS_A_SLICE = 32
MAX_NEIGHBOURS = 8
"""Pairs per geom that the broadphase stores; if a geom has more, find_pairs searches for them again."""

# Progress of a shard whose steps are issued before their counts are known: whether its latest contacts and rows exceed
# the capacity of their arenas, and how many evaluations did not.
PROGRESS: tuple[str, ...] = ("contacts_full", "rows_full", "contacts_passed", "rows_passed")

# The columns of each space that has columns.
COLUMNS_OF: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("column", "shard"), COLUMNS),
    **dict.fromkeys(("pair_column", "pair_shard"), PAIR_COLUMNS),
    "progress": PROGRESS,
    **dict.fromkeys(("island_column", "island_shard"), ISLAND_COLUMNS),
}
ISLAND_ARENAS: tuple[str, ...] = ("island", "island_M", "island_J", "island_H")
PAIR_ARENAS: tuple[str, ...] = ("pair", "slot", "slice")

# The field with the address of a world's part of an arena, by space.
ADDRESS_OF: dict[str, str] = {
    **{"contact": "con_adr", "row": "efc_adr"},
    **{space: f"{space}_adr" for space in PAIR_ARENAS},
}

# The reasons for which a world is flagged, in the order of the codes in `world_status`; zero is healthy.
STATUS: tuple[str, ...] = ("healthy", "input", "acceleration", "solve", "integrate")


class Field(NamedTuple):
    """One field of the state table.

    Attributes:
        name: MuJoCo's name, or the engine's own where MuJoCo has none.
        kind: "real" or "int".
        dims: shape of one entry; integers, sizes of the model, "nvp" (nv rounded up to a multiple of four) or
            "size+1".
        space: see the module's docstring.
        doc: meaning, unit and frame.
    """

    name: str
    kind: str
    dims: tuple[int | str, ...]
    space: str
    doc: str


def _w(name: str, *dims: int | str, doc: str, kind: str = "real") -> Field:
    return Field(name, kind, dims, "world", doc)


def _b(name: str, *dims: int | str, doc: str, kind: str = "real") -> Field:
    return Field(name, kind, dims, "block", doc)


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
    _w("world_status", doc="index into STATUS; a world that is not healthy is frozen", kind="int"),
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
    _b("near_cand", "ncand", doc="candidate pairs whose bounds overlap, in order", kind="int"),
    _b("near_adr", "ncand+1", doc="first contact of each of them within its world, and after the last", kind="int"),
    _b("search_near", "nsearch", doc="numbers of those that need a search", kind="int"),
    _b("search_found", "nsearch", doc="contacts that their search found, plus 256 times their rows", kind="int"),
    _b("search_state", "nkept", doc="what is known of the cores of the first of them, see convex.cu", kind="int"),
    _b("search_simplex", "nkept", 8, doc="support points, directions, weights and normal of their searches, 32 each"),
    _b("kept_contact", "nkept", 7, doc="distance, position and normal of contacts of the first of them, four each [m]"),
    _b("pair_tally", 3, doc="near pairs, those that need a search, and rows of the others", kind="int"),
    _w("ncon", doc="contacts of the world", kind="int"),
    _w("nefc", doc="constraint rows of the world", kind="int"),
    Field("counts", "int", (), "column", "the numbers that COLUMNS names, per world"),
    _w("con_adr", doc="first contact of the world in the contact arena", kind="int"),
    _w("efc_adr", doc="first row of the world in the row arena", kind="int"),
    Field("lists", "int", (), "column", "worlds with a one in each column, in ascending order"),
    Field("totals", "int", (NUM_COLUMNS,), "shard", "sum of each column, on the device"),
    Field("totals_host", "int", (NUM_COLUMNS,), "shard", "sum of each column, in memory the host can read"),
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
    Field("efc_J", "real", ("nvp",), "row", "constraint Jacobian, rows padded to a multiple of four"),
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
    Field("efc_Y", "real", ("nvp",), "row", "PGS: J inv(L'), with qM = L L'; rows padded like those of efc_J"),
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
    _w("qacc", "nv", doc="acceleration [m/s^2, rad/s^2]; after an RK4 step the weighted mean that was integrated"),
    _w("qfrc_constraint", "nv", doc="constraint forces [N, N m]"),
    _w("solver_niter", doc="iterations of the solver", kind="int"),
    _w("cfrc_ext", "nbody", 6, doc="com-based external and contact force on each body, torque then force [N m, N]"),
    # worlds solved island by island: block-diagonal inertia, rows over the blocks that they touch
    _b("qM_blocks", "nM", doc="joint-space inertia, block by block"),
    _b("qLD_blocks", "nM", doc="lower Cholesky factors of the blocks"),
    _b("damped_blocks", "nM", doc="lower Cholesky factors of the blocks with damping, for Euler integration"),
    Field("efc_J_blocks", "real", ("nJ",), "row", "Jacobian by the dofs of the blocks of the row"),
    Field("efc_block", "int", (2,), "row", "blocks that the row touches, the second -1 if there is one only"),
    Field("efc_by_island", "int", (), "row", "index of the row when the world's rows are ordered by island"),
    # islands: groups of blocks that rows connect, in the order of their first blocks; dofs and rows ordered by island
    _b("block_island", "nblock", doc="island of each block, -1 without rows", kind="int"),
    _b("block_root", "nblock", doc="first of the blocks that rows connect with each block", kind="int"),
    _b("block_label", "nblock", doc="scratch: lowest root next to each root; 0 for roots with rows", kind="int"),
    _b("block_island_dof", "nblock", doc="first dof of the block within its island", kind="int"),
    _b("block_index", "nblock", doc="number of the block within its island", kind="int"),
    _b("nisland", doc="islands of the world", kind="int"),
    _b("island_size", "nblock", 4, doc="dofs, rows and blocks of each island, and pieces of its Hessian", kind="int"),
    _b("island_first", "nblock", 3, doc="first dof, row and block of each island within the world", kind="int"),
    _b("island_index", "nblock", doc="record of each island", kind="int"),
    Field("island_counts", "int", (), "island_column", "the numbers that ISLAND_COLUMNS names, per world"),
    Field("island_adr", "int", (), "island_column", "sums of island_counts over the preceding worlds"),
    Field("island_totals", "int", (len(ISLAND_COLUMNS),), "island_shard", "sum of each column, on the device"),
    Field("island_totals_host", "int", (len(ISLAND_COLUMNS),), "island_shard", "the same, where the host can read it"),
    Field(
        "island_record",
        "int",
        (ISLAND_RECORD,),
        "island",
        "world, dofs, rows, first dof, row, inertia (of large islands the Hessian), Jacobian, contact, block; blocks",
    ),
    Field("island_solver_niter", "int", (), "island", "iterations of the solver"),
    Field("island_qM", "real", (4,), "island_M", "inertia of the island, dense"),
    Field("island_qLD", "real", (4,), "island_M", "its Cholesky factor"),
    Field("island_hessian", "real", (4,), "island_M", "scratch for a matrix of its size"),
    Field("island_efc_J", "real", (4,), "island_J", "Jacobian of the island, rows padded to a multiple of four"),
    Field("island_efc_Y", "real", (4,), "island_J", "PGS: J inv(L') of the island, rows padded in the same way"),
    # broadphase: geoms sorted by the grid cell that contains the lower corner of their bounding box
    _b("geom_box", "ngeom", 6, doc="bounding box and margin, world frame: lower corner, upper corner [m]"),
    _b("grid_entry", f"ngeom+{PAIR_SPARE}", 2, doc="cell and geom, while they are sorted", kind="int"),
    _b("grid_sorted", f"ngeom+{PAIR_SPARE}", 2, doc="cell and geom, by cell and then by geom", kind="int"),
    _b("grid_counter", f"ngeom+{PAIR_SPARE}", 4, doc="counts of the sorting", kind="int"),
    _b(
        "grid_start",
        "ngrid+2",
        doc="first index of each cell; large geoms come last but one, geoms that collide with nothing last",
        kind="int",
    ),
    _b("grid_box", "ngeom", 6, doc="geom_box in the order of grid_sorted [m]"),
    _b("grid_found", "ngeom", doc="number of pairs that each entry of grid_sorted finds", kind="int"),
    _b("grid_near", "ngeom", MAX_NEIGHBOURS, doc="the first geoms that each entry of grid_sorted finds", kind="int"),
    Field("pair_counts", "int", (), "pair_column", "the numbers that PAIR_COLUMNS names, per world"),
    Field("pair_totals", "int", (len(PAIR_COLUMNS),), "pair_shard", "sum of each column, on the device"),
    Field("pair_totals_host", "int", (len(PAIR_COLUMNS),), "pair_shard", "the same, where the host can read it"),
    _b("pair_adr", doc="first pair of the world in the arena of pairs", kind="int"),
    _b("slot_adr", doc="first slot of the world", kind="int"),
    _b("slice_adr", doc="first slice of the world", kind="int"),
    _b("npair", doc="pairs of the world", kind="int"),
    Field(
        "pair_entry", "int", (2,), "pair", "the geoms, while they are sorted; an explicit pair k is stored as -1 - k"
    ),
    Field("pair_sorted", "int", (2,), "pair", "the same, sorted"),
    Field("pair_counter", "int", (4,), "pair", "counts of the sorting"),
    Field("pair_geom", "int", (2,), "pair", "geoms in MuJoCo's order of pairs, the lower type first"),
    Field("pair_number", "int", (), "pair", "number of the explicit pair, or -1"),
    Field("pair_slot", "int", (), "pair", "first slot within the world"),
    Field("pair_ncon", "int", (), "pair", "contacts"),
    Field("pair_nrow", "int", (), "pair", "constraint rows of its contacts"),
    Field("pair_first", "int", (), "pair", "first contact within the world"),
    Field("slot_dist", "real", (), "slot", "as contact_dist, where the pair's contacts begin at its first slot"),
    Field("slot_pos", "real", (3,), "slot", "as contact_pos"),
    Field("slot_frame", "real", (9,), "slot", "as contact_frame"),
    Field("slice_record", "int", (4,), "slice", "world, first pair within it, number of pairs, unused"),
    # large islands, with blocks, rows and dofs in the order of the islands
    _b("island_blocks", "nblock", 6, doc="number, dofs, and addresses in the Hessian and island_links", kind="int"),
    _b("island_dof_block", "nv", doc="index within the island of the block of each dof", kind="int"),
    _b("island_vectors", "nv", 8, doc="scratch vectors of the solver of large islands"),
    Field("island_row_block", "int", (2,), "row", "blocks of the row, by their index within the island, or -1"),
    Field("island_runs", "int", (7,), "row", "runs of rows with the same blocks"),
    Field("island_links", "int", (8,), "row", "the runs of each block"),
    Field("island_hessian_blocks", "real", (4,), "island_H", "Hessian by blocks: see large.cuh"),
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
    return resolve(field.dims, {**sizes, "nvp": padded(sizes["nv"])})
