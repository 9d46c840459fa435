"""Recursive Newton-Euler: bias forces."""

from simengine.physics.stage import Stage

RNE = Stage(
    name="rne",
    reads=("qvel", "cinert", "cdof", "cvel", "cdof_dot"),
    writes=("qfrc_bias",),
    scratch=(("cacc", ("nbody", 6)),),
    flops=150,
    jax="rne_jax:rne",
)
