"""Cholesky factor of the joint-space inertia matrix."""

from simengine.physics.stage import Stage

FACTOR_M = Stage(
    name="factor_m",
    reads=("qM",),
    writes=("qLD",),
    in_place=(("qM", "qLD"),),
    symmetric=True,
    flops=100,
    jax="factor_m_jax:factor_m",
)
