"""Broadphase and counting of contacts and constraint rows."""

from simengine.stages.stage import Stage

COLLISION = Stage(
    name="collision",
    reads=("qpos", "geom_xpos", "geom_xmat", "world_status"),
    writes=("cand_adr", "ncon", "nefc", "counts"),
    scalars=("shard_size",),
    flops=60,
)
