"""Acceleration of worlds without constraint rows; their contacts have no row either."""

from simengine.physics.stage import Stage

UNCONSTRAINED = Stage(
    name="unconstrained",
    reads=("ncon", "qacc_smooth"),
    writes=("qacc", "qfrc_constraint", "solver_niter", "contact_efc_address"),
    flops=1,
)
