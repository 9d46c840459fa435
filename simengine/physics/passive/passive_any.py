"""Springs and dampers of any order."""

from simengine.physics.stage import Stage

PASSIVE_ANY = Stage(
    name="passive_any",
    reads=("qpos", "qvel"),
    writes=("qfrc_passive",),
    scratch=(("ten_force", ("ntendon",)),),
    flops=10,
    jax="passive_any_jax:passive_any",
)
