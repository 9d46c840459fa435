"""Sensors of velocities."""

from simengine.stages.stage import Stage

SENSOR_VEL = Stage(
    name="sensor_vel",
    reads=(
        *("qpos", "qvel", "xpos", "xquat", "subtree_com", "cvel", "qM", "subtree_linvel", "subtree_angmom"),
        *("ten_length", "ten_velocity", "actuator_velocity"),
    ),
    updates=("sensordata",),
    flops=50,
    ref="sensor_vel_ref:sensor_vel",
)
