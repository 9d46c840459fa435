"""Composite rigid bodies: the joint-space inertia matrix."""

from simengine.physics.stage import Stage

CRB = Stage(
    name="crb",
    reads=("cinert", "cdof"),
    writes=("crb", "qM"),
    in_place=(("cinert", "crb"),),
    flops=150,
    jax="crb_jax:crb",
)
