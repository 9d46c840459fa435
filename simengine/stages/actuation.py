"""Actuators on joints and fixed tendons."""

from simengine.stages.stage import Stage

ACTUATION = Stage(
    name="actuation",
    reads=("qpos", "qvel", "ctrl"),
    writes=("actuator_force", "qfrc_actuator"),
    flops=20,
    ref="actuation_ref:actuation",
)
