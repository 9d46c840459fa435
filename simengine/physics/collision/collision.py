"""Broadphase and counting of contacts and constraint rows.

`collision` handles light pair types (see `simengine.model.table`) and the rows of limits and contacts.
`collision_general` handles every pair type and every type of row. There are two stages because more code costs
registers and instruction fetches even in models that never run it. It lists the pairs that need a search, so that each
lane has one, and keeps what it finds for the narrowphase. Where shapes overlap, all lanes share the search of a pair.
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
    writes=("cand_adr", "search_cand", "kept_contact", "ncon", "nefc", "counts"),
    scratch=(("polytope", ("npolytope",)),),
    flops=200,
)
