"""Composite rigid bodies about points close by: the joint-space inertia matrix of models that are not simple."""

from simengine.physics.stage import Stage

CRB_NEAR = Stage(
    name="crb_near",
    reads=("xipos", "ximat", "xanchor", "cinert", "cdof"),
    writes=("crb", "qM"),
    flops=300,
    jax="crb_near_jax:crb_near",
)
