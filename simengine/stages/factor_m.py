"""Cholesky factor of the joint-space inertia matrix."""

from simengine.stages.stage import Stage

FACTOR_M = Stage(
    name="factor_m",
    reads=("qM",),
    writes=("qLD",),
    in_place=(("qM", "qLD"),),
    flops=100,
    ref="factor_m_ref:factor_m",
)
