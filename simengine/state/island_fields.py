"""Fields of worlds that are solved island by island, and the classes of islands."""

from __future__ import annotations

from simengine.state.field import Field
from simengine.state.field import of_block as _b

# Islands are solved in size classes by their dofs: dense problems up to each bound; dense problems with more dofs; and
# large and huge islands, which have sparse matrices and differ in their number of lanes. Columns that `islands` counts
# per world: the islands of each class, all islands, and the pieces of four words of dense inertia matrices, of
# Jacobians, and of the Hessians of large islands.
ISLAND_CLASSES: tuple[int, ...] = (8, 16, 32, 64)
LARGE_ISLANDS, HUGE_ISLANDS = len(ISLAND_CLASSES) + 1, len(ISLAND_CLASSES) + 2
NUM_ISLAND_CLASSES = len(ISLAND_CLASSES) + 3
MOST_LARGE_DOFS = 640
"""Most dofs of an island in the class LARGE_ISLANDS; larger ones are in HUGE_ISLANDS."""
FACTOR_SIDE = 6
"""Rows of the blocks of a GPU's sparse factors: those of a free body."""
MOST_FACTORED_BLOCKS, MOST_BLOCKS_OF_FACTOR = 64, 320
"""Most blocks of dofs of an island that a GPU solves by a sparse factor, and most blocks of such a factor. Four of
these factors fit the shared memory of a multiprocessor."""
USUAL_BLOCKS_OF_ROW = 8
"""Blocks for which the factor has room, by row. A cloth of 25 bodies has four, a heap of 24 boxes three."""
ISLAND_COLUMNS: tuple[str, ...] = (
    *(f"islands_{bound}" for bound in ISLAND_CLASSES),
    *("islands_more", "islands_large", "islands_huge", "islands", "island_M", "island_J", "island_H"),
)
COLUMN_OF_ARENA: dict[str, int] = {
    "island": ISLAND_COLUMNS.index("islands"),
    **{space: ISLAND_COLUMNS.index(space) for space in ("island_M", "island_J", "island_H")},
}
"""The column with the entries that each arena of islands needs."""
ISLAND_RECORD, RECORD_ROWS, RECORD_BLOCKS = 12, 2, 9
"""Words of an island's record, and the indices of its numbers of rows and of blocks."""

ISLAND_FIELDS: tuple[Field, ...] = (
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
)

LARGE_ISLAND_FIELDS: tuple[Field, ...] = (
    # large islands, with blocks, rows and dofs in the order of the islands
    _b("island_blocks", "nblock", 6, doc="number, dofs, and addresses in the Hessian and island_links", kind="int"),
    _b("island_dof_block", "nv", doc="index within the island of the block of each dof", kind="int"),
    _b("island_vectors", "nv", 8, doc="scratch vectors of the solver of large islands"),
    Field("island_row_block", "int", (2,), "row", "blocks of the row, by their index within the island, or -1"),
    Field("island_runs", "int", (7,), "row", "runs of rows with the same blocks"),
    Field("island_links", "int", (8,), "row", "the runs of each block"),
    Field("island_hessian_blocks", "real", (4,), "island_H", "Hessian by blocks: see large.cuh"),
)
