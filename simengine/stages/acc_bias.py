"""Accelerations of bodies at zero joint acceleration."""

from simengine.stages.stage import Stage

ACC_BIAS = Stage(
    name="acc_bias", reads=("qvel", "cdof_dot"), writes=("cacc_bias",), flops=20, ref="acc_bias_ref:acc_bias"
)
