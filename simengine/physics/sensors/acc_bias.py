"""Accelerations of bodies at zero qacc."""

from simengine.physics.stage import Stage

ACC_BIAS = Stage(
    name="acc_bias", reads=("qvel", "cdof_dot"), writes=("cacc_bias",), flops=20, jax="acc_bias_jax:acc_bias"
)
