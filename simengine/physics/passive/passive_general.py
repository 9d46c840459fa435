"""Springs and dampers of joints and fixed tendons, linear or polynomial."""

from simengine.physics.stage import Stage

PASSIVE_GENERAL = Stage(
    name="passive_general",
    reads=("qpos", "qvel"),
    writes=("qfrc_passive",),
    scratch=(("ten_force", ("ntendon",)),),
    flops=10,
    jax="passive_general_jax:passive_general",
)
