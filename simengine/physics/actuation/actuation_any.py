"""Actuators of every kind, with activations."""

from simengine.physics.stage import Stage

ACTUATION_ANY = Stage(
    name="actuation_any",
    reads=("ctrl", "act", "actuator_length", "actuator_velocity", "actuator_moment"),
    writes=("act_dot", "actuator_force", "qfrc_actuator"),
    scratch=(("force", ("nu",)),),
    flops=40,
    jax="actuation_any_jax:actuation_any",
)
