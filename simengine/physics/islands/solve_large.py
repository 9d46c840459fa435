"""Newton's method for the constraint forces of large islands, without dense matrices; see large.cuh.

It solves the large islands of models whose solver is Newton or CG, since both have the same optimum.
"""

from simengine.physics.solvers.solve_newton_general import PRIMAL_READS
from simengine.physics.stage import Form, Stage

SOLVE_LARGE = Stage(
    name="solve_large",
    form=Form.LARGE,
    of=("solve_newton_unilateral", "solve_newton_general", "solve_cg"),
    reads=(*(n for n in PRIMAL_READS if n != "qM"), "qM_blocks", "island_dof_block", "island_row_block"),
    writes=(
        *("qacc", "efc_force", "qfrc_constraint", "solver_niter", "efc_jar", "efc_jv", "efc_weight"),
        *("island_vectors", "island_runs", "island_links", "island_hessian_blocks"),
    ),
    updates=("island_blocks",),
    scratch=(("factor", ("nfactor",)),),
    flops=20000,
)
