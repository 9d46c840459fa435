"""Forward kinematics: frames of bodies, joints and geoms."""

from dataclasses import replace

from simengine.physics.stage import Stage

KINEMATICS = Stage(
    name="kinematics",
    reads=("qpos", "mocap_pos", "mocap_quat"),
    writes=("xpos", "xquat", "xmat", "xipos", "ximat", "xanchor", "xaxis", "geom_xpos", "geom_xmat"),
    flops=220,
    jax="kinematics_jax:kinematics",
)
KINEMATICS_OF_MANY = replace(
    KINEMATICS, name="kinematics_of_many", shares=("kinematics",), scratch=(("piece", (12 * 32,)),), jax=""
)
"""The same for models of so many geoms that their frames are in memory from the start."""
