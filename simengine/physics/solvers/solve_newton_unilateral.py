"""Newton's method for rows that only push: limits, frictionless contacts, and pyramids of dimension 3."""

from simengine.physics.stage import Stage

SOLVE_NEWTON_UNILATERAL = Stage(
    name="solve_newton_unilateral",
    reads=("nefc", "qM", "qfrc_smooth", "qacc_smooth", "qacc_warmstart", "efc_J", "efc_D", "efc_aref"),
    writes=("qacc", "efc_force", "qfrc_constraint", "solver_niter", "efc_jar", "efc_jv"),
    scratch=(
        ("point", ("nvp",)),
        ("Ma", ("nv",)),
        ("descent", ("nv",)),
        ("search", ("nvp",)),
        ("Mv", ("nv",)),
        ("hessian", ("nhessian",)),
    ),
    symmetric=True,
    flops=1500,
    jax="solve_newton_unilateral_jax:solve_newton_unilateral",
)
