"""Forces that compensate the weight of bodies."""

from simengine.physics.stage import Stage

GRAVCOMP = Stage(
    name="gravcomp",
    reads=("xipos", "subtree_com", "cdof"),
    writes=("qfrc_gravcomp",),
    updates=("qfrc_passive", "qfrc_actuator"),
    scratch=(("cfrc_up", ("nbody", 6)),),
    flops=20,
    jax="gravcomp_jax:gravcomp",
)
