"""Constraint rows: their Jacobian, regularisation and reference acceleration, and the cost of a row.

A row is one scalar constraint. A step runs one of these stages, after the contacts are known and before the solver:

    constraint             limits, and contacts that are frictionless or have pyramids of dimension 3
    constraint_general     rows of every type: equalities, friction losses, limits, contacts
    constraint_blocks      the same for rows that are stored by blocks of dofs (`simengine/physics/islands`)

`row_law` is the cost of a row as a function of its residual, which the solvers minimise.
Source: MuJoCo documentation, chapter "Computation", sections "Constraint model" and "Constraint solver".
"""
