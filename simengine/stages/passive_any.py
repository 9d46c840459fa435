"""Springs and dampers of any order."""

from simengine.stages.stage import Stage

PASSIVE_ANY = Stage(
    name="passive_any",
    reads=("qpos", "qvel"),
    writes=("qfrc_passive",),
    scratch=(("ten_force", ("ntendon",)),),
    flops=10,
    ref="passive_any_ref:passive_any",
)
