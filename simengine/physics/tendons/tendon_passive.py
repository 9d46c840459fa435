"""Springs and dampers of spatial tendons."""

from simengine.physics.stage import Stage

TENDON_PASSIVE = Stage(
    name="tendon_passive",
    reads=("ten_length", "ten_velocity", "ten_J"),
    updates=("qfrc_passive",),
    scratch=(("force", ("ntendon",)),),
    flops=5,
    jax="tendon_passive_jax:tendon_passive",
)
