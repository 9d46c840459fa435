"""Semi-implicit Euler integration with dampers of any order."""

from simengine.physics.stage import Stage

EULER_ANY = Stage(
    name="euler_any",
    reads=("qM", "qfrc_smooth", "qacc_smooth", "qfrc_constraint", "qacc"),
    updates=("qpos", "qvel", "qacc_warmstart", "nstep", "world_status"),
    scratch=(("matrix", ("nM",)), ("next_qvel", ("nv",)), ("next_qpos", ("nq",))),
    flops=120,
    jax="euler_any_jax:euler_any",
)
