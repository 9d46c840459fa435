"""Momenta of subtrees."""

from simengine.physics.stage import Stage

SUBTREE_VEL = Stage(
    name="subtree_vel",
    reads=("xipos", "ximat", "subtree_com", "cvel"),
    writes=("subtree_linvel", "subtree_angmom"),
    scratch=(("motion", ("nbody", 6)),),
    flops=60,
    jax="subtree_vel_jax:subtree_vel",
)
