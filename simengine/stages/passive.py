"""Springs and dampers."""

from simengine.stages.stage import Stage

PASSIVE = Stage(
    name="passive",
    reads=("qpos", "qvel"),
    writes=("qfrc_passive",),
    scratch=(("ten_force", ("ntendon",)),),
    flops=5,
    ref="passive_ref:passive",
)
