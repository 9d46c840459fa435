"""Activations after an evaluation of the dynamics.

The stage runs after the integrator, because it must know which worlds the integrator has frozen: their activations
return to the start of the step. It has a kernel of its own, so that models without activations do not run it.
"""

from simengine.physics.stage import Stage

ACTIVATION = Stage(
    name="activation",
    reads=("act_dot", "actuator_length", "world_status"),
    updates=("act", "rk_act", "rk_dact"),
    scalars=("rk_stage", "rk_last"),
    flops=5,
)
