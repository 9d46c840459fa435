"""Semi-implicit Euler integration with linear or polynomial dampers."""

from simengine.physics.stage import Form, Stage

EULER_GENERAL = Stage(
    name="euler_general",
    form=Form.GENERAL,
    of=("euler",),
    reads=("qM", "qfrc_smooth", "qacc_smooth", "qfrc_constraint", "qacc"),
    updates=("qpos", "qvel", "qacc_warmstart", "nstep", "world_status"),
    scratch=(("matrix", ("nM",)), ("next_qvel", ("nv",)), ("next_qpos", ("nq",))),
    symmetric=True,
    flops=120,
    jax="euler_general_jax:euler_general",
)
