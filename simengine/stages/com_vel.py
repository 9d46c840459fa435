"""Body velocities and rates of the motion axes."""

from simengine.stages.stage import Stage

COM_VEL = Stage(
    name="com_vel", reads=("qvel", "cdof"), writes=("cvel", "cdof_dot"), flops=50, ref="com_vel_ref:com_vel"
)
