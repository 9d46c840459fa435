"""Accelerations of bodies, and forces between them and their parents, after the constraints."""

from simengine.physics.stage import Stage

BODY_FORCES = Stage(
    name="body_forces",
    reads=("cinert", "cdof", "cvel", "cacc_bias", "qacc", "cfrc_ext"),
    writes=("cacc", "cfrc_int"),
    flops=80,
    jax="body_forces_jax:body_forces",
)
