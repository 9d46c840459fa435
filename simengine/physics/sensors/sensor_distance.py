"""Sensors of the two nearest points of geoms; a stage apart, so that other sensors do not pay for collisions."""

from simengine.physics.stage import Stage

SENSOR_DISTANCE = Stage(
    name="sensor_distance",
    reads=("geom_xpos", "geom_xmat"),
    updates=("sensordata",),
    collides="any",
    flops=200,
    jax="sensor_distance_jax:sensor_distance",
)
