"""Actuators on joints and fixed tendons."""

from simengine.physics.stage import Stage

ACTUATION = Stage(
    name="actuation",
    reads=("qpos", "qvel", "ctrl"),
    writes=("actuator_force", "qfrc_actuator"),
    flops=20,
    jax="actuation_jax:actuation",
)
