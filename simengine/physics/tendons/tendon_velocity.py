"""Rates of the tendons' lengths."""

from simengine.physics.stage import Stage

TENDON_VELOCITY = Stage(
    name="tendon_velocity",
    reads=("qvel", "ten_J"),
    writes=("ten_velocity",),
    flops=2,
    jax="tendon_velocity_jax:tendon_velocity",
)
