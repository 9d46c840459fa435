"""Velocities of the tendons' lengths."""

from simengine.stages.stage import Stage

TENDON_VELOCITY = Stage(
    name="tendon_velocity",
    reads=("qvel", "ten_J"),
    writes=("ten_velocity",),
    flops=2,
    ref="tendon_velocity_ref:tendon_velocity",
)
