"""Composite rigid bodies about points close by: the joint-space inertia matrix of models that are not simple."""

from simengine.stages.stage import Stage

CRB_NEAR = Stage(
    name="crb_near",
    reads=("xipos", "ximat", "xanchor", "cinert", "cdof"),
    writes=("crb", "qM"),
    flops=300,
    ref="crb_near_ref:crb_near",
)
