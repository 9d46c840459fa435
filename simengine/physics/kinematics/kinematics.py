"""Forward kinematics: frames of bodies, joints and geoms."""

from simengine.physics.stage import Stage

KINEMATICS = Stage(
    name="kinematics",
    reads=("qpos", "mocap_pos", "mocap_quat"),
    writes=("xpos", "xquat", "xmat", "xipos", "ximat", "xanchor", "xaxis", "geom_xpos", "geom_xmat"),
    flops=220,
    jax="kinematics_jax:kinematics",
)
