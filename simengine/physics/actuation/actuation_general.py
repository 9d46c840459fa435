"""Actuators of every kind, with activations."""

from simengine.physics.stage import Form, Stage

ACTUATION_GENERAL = Stage(
    name="actuation_general",
    form=Form.GENERAL,
    of=("actuation",),
    reads=("ctrl", "act", "actuator_length", "actuator_velocity", "actuator_moment"),
    writes=("act_dot", "actuator_force", "qfrc_actuator"),
    scratch=(("force", ("nu",)),),
    flops=40,
    jax="actuation_general_jax:actuation_general",
)
