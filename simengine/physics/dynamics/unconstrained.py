"""Acceleration of worlds without constraint rows; their contacts, if any, lie within their gap and make no row."""

from simengine.physics.stage import Stage

UNCONSTRAINED = Stage(
    name="unconstrained",
    reads=("ncon", "qacc_smooth"),
    writes=("qacc", "qfrc_constraint", "solver_niter", "contact_efc_address"),
    flops=1,
)
