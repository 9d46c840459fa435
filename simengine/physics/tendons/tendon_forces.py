"""Forces of spatial tendons on bodies, added to the external forces."""

from simengine.physics.stage import Stage

TENDON_FORCES = Stage(
    name="tendon_forces",
    reads=(
        *("xpos", "xquat", "subtree_com", "geom_xpos", "geom_xmat", "ten_length", "ten_velocity", "actuator_force"),
        *("nefc", "efc_pos", "efc_type", "efc_id", "efc_force"),
    ),
    updates=("cfrc_ext",),
    scratch=(("pieces", ("npath", 19)), ("pull", ("ntendon",))),
    shares=("tendon",),
    flops=60,
    jax="tendon_forces_jax:tendon_forces",
)
