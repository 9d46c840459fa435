"""One evaluation of the fourth-order Runge-Kutta step."""

from simengine.physics.stage import Stage

RK4 = Stage(
    name="rk4",
    reads=("qacc_smooth",),
    updates=(
        "qacc",
        "qpos",
        "qvel",
        "qacc_warmstart",
        "nstep",
        "world_status",
        "rk_qpos",
        "rk_qvel",
        "rk_rate",
        "rk_dqpos",
        "rk_dqvel",
    ),
    scalars=("rk_stage",),
    flops=20,
)
