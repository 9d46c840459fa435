"""Non-linear conjugate gradients for the constraint forces, with rows of every type."""

from simengine.physics.solvers.solve_newton_general import PRIMAL_READS
from simengine.physics.stage import Stage

SOLVE_CG = Stage(
    name="solve_cg",
    reads=(*PRIMAL_READS, "qLD"),
    writes=("qacc", "efc_force", "qfrc_constraint", "solver_niter", "efc_jar", "efc_jv", "efc_weight"),
    scratch=(
        ("point", ("nvp",)),
        ("Ma", ("nv",)),
        ("gradient", ("nv",)),
        ("scaled", ("nv",)),
        ("change", ("nv",)),
        ("search", ("nvp",)),
        ("Mv", ("nv",)),
    ),
    flops=5000,
    jax="solve_cg_jax:solve_cg",
)
