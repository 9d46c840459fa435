"""Flag worlds whose state or input is not finite."""

from simengine.physics.stage import Stage

GUARD = Stage(
    name="guard",
    reads=("qpos", "qvel", "ctrl", "qfrc_applied", "xfrc_applied", "mocap_pos", "mocap_quat"),
    updates=("world_status",),
    flops=2,
)
