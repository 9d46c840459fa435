"""Kinematics and centres of mass in parts, which a GPU has in scratch one after another."""

from simengine.physics.kinematics.kinematics import KINEMATICS_OF_MANY
from simengine.physics.stage import Stage

BODY_POSES = Stage(
    name="body_poses",
    reads=("qpos", "mocap_pos", "mocap_quat"),
    writes=("xpos", "xquat", "xanchor", "xaxis"),
    shares=("kinematics",),
    flops=140,
)
GEOM_FRAMES = Stage(
    name="geom_frames",
    reads=("xpos", "xquat"),
    writes=("geom_xpos", "geom_xmat"),
    shares=("kinematics", "kinematics_of_many"),
    flops=60,
)
GEOM_FRAMES_OF_MANY = Stage(
    name="geom_frames_of_many",
    reads=GEOM_FRAMES.reads,
    writes=GEOM_FRAMES.writes,
    scratch=KINEMATICS_OF_MANY.scratch,
    shares=GEOM_FRAMES.shares,
    flops=60,
)
"""The same for so many geoms that their frames are in memory from the start."""
BODY_MATRICES, INERTIAL_MATRICES = (
    Stage(name=name, reads=("xquat",), writes=(matrices,), shares=("com_pos",), flops=20, if_kept=True)
    for name, matrices in (("body_matrices", "xmat"), ("inertial_matrices", "ximat"))
)
TREE_CENTRES = Stage(
    name="tree_centres",
    reads=("xpos", "xquat", "xanchor", "xaxis"),
    writes=("xipos", "subtree_com", "cdof"),
    shares=("com_pos",),
    flops=60,
)
BODY_INERTIAS = Stage(
    name="body_inertias",
    reads=("xquat", "xipos", "subtree_com"),
    writes=("cinert",),
    shares=("com_pos",),
    flops=60,
)

BODY_PARTS = (BODY_POSES, BODY_MATRICES, INERTIAL_MATRICES)
"""Kinematics without the frames of geoms."""
COM_POS_PARTS = (TREE_CENTRES, BODY_INERTIAS)
