"""Lengths of the tendons and their derivatives by the velocities."""

from simengine.stages.stage import Stage

TENDON = Stage(
    name="tendon",
    reads=("qpos",),
    writes=("ten_length", "ten_J"),
    flops=40,
    ref="tendon_ref:tendon",
)
