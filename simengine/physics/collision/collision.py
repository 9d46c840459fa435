"""Broadphase and counting of contacts and constraint rows.

Two stages of the same work: `collision` knows the light pair types only, and the rows of limits and contacts, so that
simple models do not pay for code they never run; `collision_general` knows all.
"""

from dataclasses import replace

from simengine.physics.stage import Form, Stage

COLLISION = Stage(
    name="collision",
    reads=("qpos", "geom_xpos", "geom_xmat", "world_status"),
    writes=("cand_adr", "ncon", "nefc", "counts"),
    scalars=("shard_size",),
    collides="light",
    flops=60,
)
COLLISION_GENERAL = replace(
    COLLISION,
    name="collision_general",
    form=Form.GENERAL,
    of=("collision",),
    collides="any",
    reads=("qpos", "eq_active", "ten_length", "geom_xpos", "geom_xmat", "world_status"),
    flops=200,
)
