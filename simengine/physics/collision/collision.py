"""Broadphase and counting of contacts and constraint rows.

`collision` handles light pair types (see `simengine.model.table`) and the rows of limits and contacts.
`collision_general` handles every pair type and every type of row. There are two stages because more code costs
registers and instruction fetches even in models that never run it. It lists the pairs that need a search, so that each
lane has one, and keeps what it finds for the narrowphase. Where shapes overlap, all lanes share the search of a pair.

`collision_list`, `collision_distance`, `collision_depth`, `collision_touch` and `collision_count` do the same one after
another, so that each lane of a GPU has a search, whichever world it belongs to. `collision_near` does so with the pairs
that need no search, which `collision_list` counts otherwise. What the second leaves to the third and
fourth is in one queue for all worlds of a shard. `list_culled` takes the place of
`collision_list` in models of many candidate pairs, most of whose geoms are far from each other: it looks at the pairs
of two clusters of geoms only where their boxes meet.
"""

from dataclasses import replace

from simengine.physics.stage import Form, Stage

COLLISION = Stage(
    name="collision",
    reads=("qpos", "geom_xpos", "geom_xmat", "world_status"),
    writes=("near_cand", "near_adr", "pair_tally", "ncon", "nefc", "counts"),
    scratch=(("waiting", (64,)),),
    scalars=("shard_size",),
    collides="light",
    flops=60,
)
COLLISION_GENERAL = replace(
    COLLISION,
    name="collision_general",
    form=Form.GENERAL,
    of=("collision",),
    collides="counted",
    reads=("qpos", "eq_active", "ten_length", "geom_xpos", "geom_xmat", "world_status"),
    writes=(
        *("near_cand", "near_adr", "search_near", "search_found", "kept_contact", "kept_prism"),
        *("pair_tally", "ncon", "nefc", "counts"),
    ),
    scratch=(("polytope", ("npolytope",)), ("waiting", (64,))),
    shares=("convex", "hfield", "collision_list", "collision_count"),
    flops=200,
)
COLLISION_LIST = Stage(
    name="collision_list",
    reads=("geom_xpos", "geom_xmat", "world_status"),
    writes=("near_cand", "near_adr", "search_near", "kept_prism", "pair_tally", "search_queue"),
    scratch=(("waiting", (64,)), ("bounds", ("nbounds",))),
    collides="counted",
    shares=("convex", "hfield"),
    flops=60,
)
LIST_CULLED = replace(
    COLLISION_LIST,
    name="list_culled",
    scratch=(("waiting", (128,)), ("boxes", ("nboxes",)), ("near_bits", ("nbits",))),
    shares=("convex", "hfield", "collision_list"),
)
COLLISION_NEAR = Stage(
    name="collision_near",
    reads=("geom_xpos", "geom_xmat", "near_cand", "pair_tally"),
    updates=("near_adr",),
    scalars=("part", "parts"),
    collides="counted",
    shares=("convex",),
    flops=60,
)
COLLISION_DISTANCE = Stage(
    name="collision_distance",
    reads=("geom_xpos", "geom_xmat", "near_cand", "search_near", "pair_tally"),
    writes=("search_found", "search_state", "search_simplex"),
    updates=("search_queue",),
    scalars=("part", "parts", "world", "begin", "n"),
    shares=("convex",),
    flops=100,
)
COLLISION_DEPTH = Stage(
    name="collision_depth",
    reads=("geom_xpos", "geom_xmat", "near_cand", "search_near", "search_queue"),
    updates=("search_simplex",),
    scratch=(("polytope", ("npolytope",)),),
    scalars=("part",),
    shares=("convex",),
    flops=100,
)
COLLISION_TOUCH = Stage(
    name="collision_touch",
    reads=(
        *("geom_xpos", "geom_xmat", "near_cand", "search_near", "pair_tally", "search_state", "search_simplex"),
        "search_queue",
    ),
    writes=("kept_contact",),
    updates=("search_found",),
    scalars=("part",),
    shares=("convex",),
    flops=100,
)
COLLISION_COUNT = Stage(
    name="collision_count",
    reads=(
        *("qpos", "eq_active", "ten_length", "world_status", "near_cand", "search_near", "search_found"),
        "pair_tally",
    ),
    writes=("ncon", "nefc", "counts"),
    updates=("near_adr",),
    scalars=("shard_size",),
    flops=20,
)
