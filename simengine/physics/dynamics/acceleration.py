"""Smooth forces and the acceleration they give."""

from dataclasses import replace

from simengine.physics.stage import Form, Stage

ACCELERATION = Stage(
    name="acceleration",
    reads=(
        "qfrc_applied",
        "xfrc_applied",
        "xipos",
        "subtree_com",
        "cdof",
        "qfrc_passive",
        "qfrc_bias",
        "qfrc_actuator",
        "qLD",
    ),
    writes=("qfrc_smooth", "qacc_smooth"),
    scratch=(("cfrc_applied", ("nbody", 6)),),
    flops=80,
    jax="acceleration_jax:acceleration",
)

ACCELERATION_BRANCHES = replace(
    ACCELERATION,
    name="acceleration_branches",
    form=Form.BRANCHES,
    of=("acceleration",),
    reads=(*ACCELERATION.reads[:-1], "qM"),
    scratch=(*ACCELERATION.scratch, ("branches", ("nbranchword",))),
    symmetric=True,
    jax="",
)

ACCELERATION_WIDE = replace(
    ACCELERATION,
    name="acceleration_wide",
    form=Form.WIDE,
    of=("acceleration",),
    reads=(*ACCELERATION.reads[:-1], "qM"),
    scratch=(*ACCELERATION.scratch, ("beyond", ("nhessian",))),
    symmetric=True,
    jax="",
)
