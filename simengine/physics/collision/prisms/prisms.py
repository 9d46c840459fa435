"""Contacts with height fields on GPUs, where lanes have prisms of any world.

`prism_list` lists the prisms of a world that may touch. `prism_distance`, `prism_depth` and `prism_touch` search for
their contacts, as the kernels for pairs of convex shapes do. `prism_count` numbers contacts, and `prism_store`, a
narrowphase, stores them. They take the place of `hfield` and of what stages that list pairs do with height fields.
"""

from simengine.model.pairs import POLYTOPE_WORDS
from simengine.physics.stage import Stage

_POSES = ("geom_xpos", "geom_xmat", "near_cand")

PRISM_LIST = Stage(
    name="prism_list",
    reads=(*_POSES, "pair_tally"),
    writes=("prism_of", "prism_tally", "prism_queue"),
    scratch=(("above", (56,)),),
    shares=("convex", "patch"),
    flops=60,
)
PRISM_DISTANCE = Stage(
    name="prism_distance",
    reads=(*_POSES, "prism_of", "prism_tally"),
    writes=("prism_state", "prism_simplex", "prism_contact"),
    updates=("prism_queue",),
    scalars=("part", "parts", "world", "begin", "n"),
    shares=("convex", "patch"),
    flops=100,
)
PRISM_DEPTH = Stage(
    name="prism_depth",
    reads=(*_POSES, "prism_of", "prism_queue"),
    updates=("prism_simplex",),
    scratch=(("polytope", (POLYTOPE_WORDS,)),),
    scalars=("part",),
    shares=("convex", "patch"),
    flops=100,
)
PRISM_TOUCH = Stage(
    name="prism_touch",
    reads=(*_POSES, "prism_of", "prism_simplex", "prism_queue"),
    updates=("prism_state", "prism_contact"),
    scalars=("part",),
    shares=("convex", "patch"),
    flops=100,
)
PRISM_COUNT = Stage(
    name="prism_count",
    reads=(*_POSES, "prism_of", "prism_tally", "prism_state", "prism_contact"),
    writes=("prism_place",),
    updates=("near_adr", "pair_tally"),
    shares=("convex", "hfield"),
    flops=20,
)
PRISM_STORE = Stage(
    name="prism_store",
    reads=(*_POSES, "near_adr", "pair_tally", "prism_of", "prism_tally", "prism_place", "prism_contact"),
    writes=("contact_dist", "contact_pos", "contact_frame", "contact_cand"),
    shares=("convex", "hfield"),
    flops=20,
)
PRISM_STAGES = (PRISM_LIST, PRISM_DISTANCE, PRISM_DEPTH, PRISM_TOUCH, PRISM_COUNT, PRISM_STORE)
