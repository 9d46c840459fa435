"""Newton's method for the constraint forces, with rows of every type."""

from simengine.physics.stage import Form, Stage

PRIMAL_READS = (
    *("nefc", "qM", "qfrc_smooth", "qacc_smooth", "qacc_warmstart", "efc_J", "efc_D", "efc_aref"),
    *("efc_type", "efc_id", "efc_frictionloss", "contact_efc_address", "contact_cand"),
)
"""Fields that a primal solver reads of rows of every type."""

SOLVE_NEWTON_GENERAL = Stage(
    name="solve_newton_general",
    form=Form.GENERAL,
    of=("solve_newton_unilateral",),
    reads=PRIMAL_READS,
    writes=("qacc", "efc_force", "qfrc_constraint", "solver_niter", "efc_jar", "efc_jv", "efc_weight"),
    scratch=(
        ("point", ("nvp",)),
        ("Ma", ("nv",)),
        ("descent", ("nv",)),
        ("search", ("nvp",)),
        ("Mv", ("nv",)),
        ("hessian", ("nhessian",)),
    ),
    symmetric=True,
    flops=3000,
    jax="solve_newton_general_jax:solve_newton_general",
)
