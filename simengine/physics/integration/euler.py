"""Semi-implicit Euler integration."""

from simengine.physics.stage import Stage

EULER = Stage(
    name="euler",
    reads=("qM", "qfrc_smooth", "qacc_smooth", "qfrc_constraint", "qacc"),
    updates=("qpos", "qvel", "qacc_warmstart", "nstep", "world_status"),
    scratch=(("force", ("nv",)), ("next_qvel", ("nv",)), ("next_qpos", ("nq",)), ("hessian", ("nhessian",))),
    symmetric=True,
    flops=120,
    jax="euler_jax:euler",
)
