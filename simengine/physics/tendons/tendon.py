"""Lengths of the tendons and their Jacobians."""

from simengine.physics.stage import Stage

TENDON = Stage(
    name="tendon",
    reads=("qpos", "xpos", "xquat", "subtree_com", "cdof", "geom_xpos", "geom_xmat"),
    writes=("ten_length", "ten_J"),
    scratch=(("pieces", ("npiece", 19)),),
    flops=60,
    jax="tendon_jax:tendon",
)
