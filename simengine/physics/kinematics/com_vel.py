"""Body velocities and rates of the motion axes."""

from simengine.physics.stage import Stage

COM_VEL = Stage(
    name="com_vel", reads=("qvel", "cdof"), writes=("cvel", "cdof_dot"), flops=50, jax="com_vel_jax:com_vel"
)
