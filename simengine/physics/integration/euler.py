"""Semi-implicit Euler integration."""

from dataclasses import replace

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

EULER_FACTOR = Stage(
    name="euler_factor",
    reads=("qM",),
    writes=("damped_branches",),
    scratch=(("right", ("nv",)), ("branches", ("nbranchword",))),
    symmetric=True,
    flops=100,
)

EULER_FACTORED = replace(
    EULER,
    name="euler_factored",
    reads=("damped_branches", *EULER.reads[1:]),
    scratch=(("next_qvel", ("nv",)), ("next_qpos", ("nq",))),
    symmetric=False,
    flops=20,
    jax="",
)
