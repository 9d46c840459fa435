"""Momenta of subtrees."""

from simengine.stages.stage import Stage

SUBTREE_VEL = Stage(
    name="subtree_vel",
    reads=("subtree_com", "cinert", "cvel"),
    writes=("subtree_linvel", "subtree_angmom"),
    scratch=(("momentum", ("nbody", 6)),),
    flops=40,
    ref="subtree_vel_ref:subtree_vel",
)
