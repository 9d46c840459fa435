"""Integration implicit in velocity: `implicit`, and `implicitfast` without the derivative of Coriolis forces."""

from simengine.physics.stage import Stage

_MOVING = (
    *("xipos", "ximat", "geom_xpos", "geom_xmat", "subtree_com", "cinert", "crb", "cdof", "cvel", "cdof_dot", "ten_J"),
    *("ctrl", "act", "act_dot", "actuator_length", "actuator_velocity", "actuator_moment", "actuator_force"),
    "qfrc_actuator",
)


def _implicit(name: str, whole: str, flops: float) -> Stage:
    return Stage(
        name=name,
        body="implicit",
        constants=whole,
        reads=("qM", "qfrc_smooth", "qacc_smooth", "qfrc_constraint", "qacc", *_MOVING),
        updates=("qpos", "qvel", "qacc_warmstart", "nstep", "world_status"),
        scratch=(
            *(("slope", ("nu",)), ("tendon_slopes", ("ntendon",)), ("maps", ("nbody", 36)), ("drift", ("nv", 6))),
            *(("matrix", ("nM",)), ("next_qvel", ("nv",)), ("next_qpos", ("nq",))),
        ),
        symmetric=name == "implicitfast",
        flops=flops,
        jax=f"{name}_jax:{name}",
    )


IMPLICIT = _implicit("implicit", "true", 1000)
IMPLICITFAST = _implicit("implicitfast", "false", 700)
