"""Islands: worlds with many bodies, split into groups of dofs that constraint rows connect.

For models with many kinematic trees, the inertia matrix is stored as blocks of dofs: one per tree, or per group of
trees that a tendon couples. Each constraint row is stored over the dofs of the one or two blocks that it touches.
Stages, in the order in which a step runs them:

    crb_blocks, factor_blocks, acceleration_blocks   dynamics with block-diagonal inertia
    constraint_blocks                                constraint rows over the blocks that they touch
    islands, scan_islands                            find the islands, and add up their sizes over the worlds
    gather                                           copy each island's problem to contiguous memory
    pgs_start, pgs_warm, pgs_descend                 PGS on the islands; the other solvers are those of `solvers`
    solve_large, pgs_start_large, pgs_descend_large  the same for islands too large for a dense matrix
    scatter                                          copy the solutions back to the world
    euler_blocks                                     Euler integration with block-diagonal inertia

Source: MuJoCo documentation, chapter "Computation", section "Constraint solver", "Constraint islands".
"""
