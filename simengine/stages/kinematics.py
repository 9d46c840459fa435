"""Forward kinematics: frames of bodies, joints and geoms."""

from simengine.stages.stage import Stage

KINEMATICS = Stage(
    name="kinematics",
    reads=("qpos",),
    writes=("xpos", "xquat", "xmat", "xipos", "ximat", "xanchor", "xaxis", "geom_xpos", "geom_xmat"),
    flops=220,
    ref="kinematics_ref:kinematics",
)
