"""Constraint solvers: from constraint rows to constraint forces and the constrained acceleration of a world.

A step runs one of the `solve_` stages, and after it `noslip` if the model asks for it:

    solve_newton_unilateral     Newton, for limits, frictionless contacts and pyramids of dimension 3
    solve_newton_general        Newton, for rows of every type
    solve_cg                    non-linear conjugate gradients
    solve_pgs                   projected Gauss-Seidel on the dual problem
    noslip                      sweeps that ignore the regularisation of friction

Source: MuJoCo documentation, chapter "Computation", section "Constraint solver".
"""
