"""Projected Gauss-Seidel island by island; `solve_pgs` does the same for all islands of a world in one stage.

As in MuJoCo, a whole world uses its warm start or does not, so `pgs_warm` decides that between two stages that run over
its islands.
"""

from simengine.physics.stage import Form, Stage

_ROWS = ("efc_D", "efc_type", "efc_id", "efc_frictionloss", "contact_efc_address", "contact_cand")
PGS_START = Stage(
    name="pgs_start",
    reads=("nefc", "qLD", "qacc_smooth", "qacc_warmstart", "efc_J", "efc_aref", *_ROWS),
    writes=("efc_force", "efc_Y", "efc_b", "efc_diagAR", "efc_weight", "efc_before", "efc_order"),
    scratch=(("z", ("nvp",)),),
    flops=5000,
)
PGS_WARM = Stage(
    name="pgs_warm",
    contact_parameters=True,
    reads=("nefc", "efc_by_island", "island_efc_before"),
    updates=("island_efc_force",),
    flops=2,
)
PGS_DESCEND = Stage(
    name="pgs_descend",
    reads=(
        *("nefc", "qM", "qLD", "qacc_smooth", "efc_J", *_ROWS),
        *("efc_Y", "efc_b", "efc_diagAR", "efc_weight"),
    ),
    writes=("qacc", "qfrc_constraint", "solver_niter", "efc_before"),
    updates=("efc_force", "efc_order"),
    scratch=(("z", ("nvp",)), ("draw", (32,))),
    flops=20000,
)

_LARGE = (*_ROWS, "qM_blocks", "qLD_blocks")
_GRAPH = ("island_dof_block", "island_row_block")
PGS_START_LARGE = Stage(
    name="pgs_start_large",
    form=Form.LARGE,
    of=("pgs_start",),
    reads=("nefc", "qacc_smooth", "qacc_warmstart", "efc_J", "efc_aref", *_LARGE, *_GRAPH),
    writes=(*PGS_START.writes, "island_vectors", "island_runs", "island_links"),
    updates=("island_blocks",),
    flops=500,
)
PGS_DESCEND_LARGE = Stage(
    name="pgs_descend_large",
    form=Form.LARGE,
    of=("pgs_descend",),
    reads=(
        *("nefc", "qacc_smooth", "efc_J", *_ROWS, "efc_Y", "efc_b", "efc_diagAR", "efc_weight"),
        *("qM_blocks", "qLD_blocks", *_GRAPH),
    ),
    writes=(*PGS_DESCEND.writes, "island_vectors"),
    updates=("efc_force", "efc_order", "island_runs", "island_links", "island_blocks"),
    scratch=(("draw", (32,)),),
    flops=2000,
)
