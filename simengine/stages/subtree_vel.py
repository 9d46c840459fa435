"""Momenta of subtrees."""

from simengine.stages.stage import Stage

SUBTREE_VEL = Stage(
    name="subtree_vel",
    reads=("xipos", "ximat", "subtree_com", "cvel"),
    writes=("subtree_linvel", "subtree_angmom"),
    scratch=(("motion", ("nbody", 6)),),
    flops=60,
    ref="subtree_vel_ref:subtree_vel",
)
