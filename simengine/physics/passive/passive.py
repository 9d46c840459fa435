"""Linear springs and dampers of joints and fixed tendons."""

from simengine.physics.stage import Stage

PASSIVE = Stage(
    name="passive",
    reads=("qpos", "qvel"),
    writes=("qfrc_passive",),
    scratch=(("ten_force", ("ntendon",)),),
    flops=5,
    jax="passive_jax:passive",
)
