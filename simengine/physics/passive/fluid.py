"""Drag of a fluid on bodies, each of which counts as a box of its mass and inertia."""

from simengine.physics.stage import Stage

FLUID = Stage(
    name="fluid",
    reads=("xipos", "ximat", "subtree_com", "cdof", "cvel"),
    writes=("qfrc_fluid",),
    updates=("qfrc_passive",),
    scratch=(("cfrc_fluid", ("nbody", 6)),),
    flops=100,
    jax="fluid_jax:fluid",
)
