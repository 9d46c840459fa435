"""Potential and kinetic energy."""

from simengine.physics.stage import Stage

ENERGY = Stage(
    name="energy",
    reads=("qpos", "qvel", "xipos", "ten_length", "qM"),
    writes=("energy",),
    flops=10,
    jax="energy_jax:energy",
)
