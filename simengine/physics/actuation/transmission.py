"""Lengths, velocities and moments of the actuators."""

from simengine.physics.stage import Stage

TRANSMISSION = Stage(
    name="transmission",
    reads=("qpos", "qvel", "xquat", "subtree_com", "cdof", "site_xpos", "site_xmat", "ten_length", "ten_J"),
    writes=("actuator_length", "actuator_velocity", "actuator_moment"),
    scratch=(("wrench", ("nu", 12)),),
    flops=60,
    jax="transmission_jax:transmission",
)
