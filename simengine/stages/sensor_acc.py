"""Sensors of accelerations and forces."""

from simengine.stages.stage import Stage

SENSOR_ACC = Stage(
    name="sensor_acc",
    reads=("xpos", "xquat", "subtree_com", "cvel", "cacc", "cfrc_int", "actuator_force", "qfrc_actuator"),
    updates=("sensordata",),
    flops=50,
    ref="sensor_acc_ref:sensor_acc",
)
