"""Dynamics without constraints: from positions and velocities to the smooth acceleration.

Stages, in the order in which a step runs them:

    crb, crb_general       joint-space inertia matrix qM by composite rigid bodies
    factor_m               Cholesky factor of qM
    rne                    bias forces: Coriolis, centrifugal and gravitational
    acceleration           sum of the smooth forces, and the acceleration they give
    unconstrained          the result for a world without constraint rows

Stages named `_blocks` do the same for models whose inertia is stored as blocks (`simengine/physics/islands`), and those
named `_wide` and `_branches` on a GPU for matrices of more rows than a warp has lanes (`simengine/plan/variants.py`).
Source: MuJoCo documentation, chapter "Computation", sections "General framework" and "Simulation pipeline".
"""
