"""Springs and dampers of joints and fixed tendons, linear or polynomial."""

from simengine.physics.stage import Form, Stage

PASSIVE_GENERAL = Stage(
    name="passive_general",
    form=Form.GENERAL,
    of=("passive",),
    reads=("qpos", "qvel"),
    writes=("qfrc_passive",),
    scratch=(("ten_force", ("ntendon",)),),
    flops=10,
    jax="passive_general_jax:passive_general",
)
