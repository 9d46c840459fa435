"""Sensors of velocities."""

from simengine.physics.stage import Stage

SENSOR_VEL = Stage(
    name="sensor_vel",
    reads=(
        *("qpos", "qvel", "xpos", "xquat", "subtree_com", "cvel", "qM", "subtree_linvel", "subtree_angmom"),
        *("ten_length", "ten_velocity", "actuator_velocity"),
    ),
    updates=("sensordata",),
    flops=50,
    jax="sensor_vel_jax:sensor_vel",
)
