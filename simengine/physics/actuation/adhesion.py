"""Moments of adhesion actuators; unlike those of other transmissions, they depend on the contacts."""

from simengine.physics.stage import Stage

ADHESION = Stage(
    name="adhesion",
    contact_parameters=True,
    reads=("qvel", "subtree_com", "cdof", "ncon", "contact_pos", "contact_frame", "contact_cand"),
    updates=("actuator_velocity", "actuator_moment"),
    flops=20,
    jax="adhesion_jax:adhesion",
)
