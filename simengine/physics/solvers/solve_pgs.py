"""Projected Gauss-Seidel for the constraint forces."""

from simengine.physics.stage import Stage

SOLVE_PGS = Stage(
    name="solve_pgs",
    reads=(
        *("nefc", "qM", "qLD", "qacc_smooth", "qacc_warmstart"),
        *("efc_J", "efc_D", "efc_aref", "efc_type", "efc_id", "efc_frictionloss"),
        *("contact_efc_address", "contact_cand"),
    ),
    writes=(
        *("qacc", "efc_force", "qfrc_constraint", "solver_niter"),
        *("efc_Y", "efc_b", "efc_diagAR", "efc_weight", "efc_before", "efc_island", "efc_order"),
    ),
    scratch=(("z", ("nvp",)), ("draw", (32,)), ("tree", ("ntree",)), ("pull", ("npull",))),
    flops=20000,
    jax="solve_pgs_jax:solve_pgs",
)
