"""Composite rigid bodies with moments about nearby points: the joint-space inertia matrix of general models."""

from simengine.physics.stage import Form, Stage

CRB_GENERAL = Stage(
    name="crb_general",
    form=Form.GENERAL,
    of=("crb",),
    reads=("xipos", "ximat", "xanchor", "cinert", "cdof"),
    writes=("crb", "qM"),
    in_place=(("cinert", "crb"),),
    flops=300,
    jax="crb_general_jax:crb_general",
)
