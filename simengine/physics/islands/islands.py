"""Islands: dofs that constraint rows connect, gathered into small problems whose solutions are scattered back."""

from simengine.physics.constraints.constraint_general import CONSTRAINT_GENERAL
from simengine.physics.stage import Form, Stage
from simengine.state.fields import ISLAND_ARENAS

CONSTRAINT_BLOCKS = Stage(
    name="constraint_blocks",
    form=Form.BLOCKS,
    of=("constraint", "constraint_general"),
    contact_parameters=True,
    reads=CONSTRAINT_GENERAL.reads,
    writes=(*(n for n in CONSTRAINT_GENERAL.writes if n != "efc_J"), "efc_J_blocks", "efc_block"),
    scratch=CONSTRAINT_GENERAL.scratch,
    shares=("constraint_general",),
    flops=400,
)
ISLANDS = Stage(
    name="islands",
    reads=("nefc", "efc_block"),
    writes=(
        *("efc_by_island", "block_root", "block_label", "block_island", "block_island_dof", "block_index"),
        *("nisland", "island_size", "island_first", "island_counts"),
    ),
    scalars=("shard_size",),
    flops=10,
)
SCAN_ISLANDS = Stage(
    name="scan_islands",
    reads=("island_counts",),
    writes=("island_adr", "island_totals", "island_totals_host"),
    updates=("progress", "progress_host"),
    scalars=("begin", "shard_size", *(f"{space}_capacity" for space in ISLAND_ARENAS)),
    flops=2,
)
GATHER = Stage(
    name="gather",
    reads=(
        *("con_adr", "efc_adr", "ncon", "nefc", "qM_blocks", "qLD_blocks"),
        *("qfrc_smooth", "qacc_smooth", "qacc_warmstart"),
        *("contact_efc_address", "efc_J_blocks", "efc_block", "efc_D", "efc_aref", "efc_type", "efc_id"),
        *("efc_frictionloss", "efc_by_island"),
        *("block_island", "block_island_dof", "block_index", "nisland", "island_size", "island_first", "island_adr"),
        "island_totals",
    ),
    writes=(
        *("island_index", "island_record", "island_qM", "island_qLD", "island_efc_J"),
        *("island_qfrc_smooth", "island_qacc_smooth", "island_qacc_warmstart", "island_efc_D", "island_efc_aref"),
        *("island_efc_type", "island_efc_id", "island_efc_frictionloss", "island_contact_efc_address"),
        *("island_blocks", "island_dof_block", "island_row_block"),
    ),
    scalars=("world", "shard_size"),
    flops=20,
)
SCATTER = Stage(
    name="scatter",
    reads=(
        *("nefc", "qacc_smooth", "efc_by_island", "block_island", "block_island_dof", "nisland", "island_first"),
        *("island_index", "island_qacc", "island_qfrc_constraint", "island_efc_force"),
        "island_solver_niter",
    ),
    writes=("qacc", "qfrc_constraint", "efc_force", "solver_niter"),
    flops=4,
)
