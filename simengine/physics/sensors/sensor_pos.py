"""Sensors of positions; every other entry of sensordata becomes zero."""

from simengine.physics.stage import Stage

SENSOR_POS = Stage(
    name="sensor_pos",
    reads=(
        *("qpos", "nstep", "xpos", "xquat", "xipos", "subtree_com", "geom_xpos", "geom_xmat"),
        *("ten_length", "actuator_length"),
    ),
    writes=("sensordata",),
    flops=50,
    jax="sensor_pos_jax:sensor_pos",
)
