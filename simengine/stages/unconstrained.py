"""Acceleration of worlds without constraint rows."""

from simengine.stages.stage import Stage

UNCONSTRAINED = Stage(
    name="unconstrained",
    reads=("qacc_smooth",),
    writes=("qacc", "qfrc_constraint", "solver_niter"),
    flops=1,
)
