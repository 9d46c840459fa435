"""Potential and kinetic energy."""

from simengine.stages.stage import Stage

ENERGY = Stage(
    name="energy",
    reads=("qpos", "qvel", "xipos", "ten_length", "qM"),
    writes=("energy",),
    flops=10,
    ref="energy_ref:energy",
)
