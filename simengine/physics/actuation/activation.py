"""Activations at the end of an evaluation of the dynamics.

A kernel of its own, after the integrator: it leaves the activations of frozen worlds as they were at the start of the
step, and simple models, which have none, do without it.
"""

from simengine.physics.stage import Stage

ACTIVATION = Stage(
    name="activation",
    reads=("act_dot", "world_status"),
    updates=("act", "rk_act", "rk_dact"),
    scalars=("rk_stage", "rk_last"),
    flops=5,
)
