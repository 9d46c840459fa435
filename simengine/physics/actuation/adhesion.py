"""Moments of actuators on the contacts of a body; they need the contacts, which other transmissions do without."""

from simengine.physics.stage import Stage

ADHESION = Stage(
    name="adhesion",
    contact_parameters=True,
    reads=("qvel", "subtree_com", "cdof", "ncon", "contact_pos", "contact_frame", "contact_cand"),
    updates=("actuator_velocity", "actuator_moment"),
    flops=20,
    jax="adhesion_jax:adhesion",
)
