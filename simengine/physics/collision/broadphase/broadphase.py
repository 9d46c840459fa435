"""Stages that find the pairs of geoms in every step: broadphase, pairs in MuJoCo's order, and their narrowphase.

    broadphase ── scan_pairs ── counts ── find_pairs ── collide, per slice ── count_pairs ── (scan) ── copy_contacts

Models with many geoms have no table of candidate pairs; see `simengine.model.colliders`. The contacts have the same
bits and the same order as with a table. On the GPU a block of threads sorts the geoms of a world, while the narrowphase
processes slices of the pairs, which spread over the whole GPU.
"""

from simengine.physics.stage import Stage
from simengine.state.fields import CONTACT_PARAMETERS

BROADPHASE = Stage(
    name="broadphase",
    reads=("geom_xpos", "geom_xmat", "world_status"),
    writes=(
        *("geom_box", "grid_entry", "grid_sorted", "grid_counter", "grid_start", "grid_box", "grid_found"),
        *("grid_near", "pair_counts"),
    ),
    scalars=("shard_size",),
    flops=100,
)
SCAN_PAIRS = Stage(
    name="scan_pairs",
    reads=("pair_counts",),
    writes=("pair_adr", "slot_adr", "slice_adr", "pair_totals", "pair_totals_host"),
    scalars=("begin", "shard_size"),
    flops=2,
)
FIND_PAIRS = Stage(
    name="find_pairs",
    reads=(
        "geom_xpos",
        "geom_xmat",
        "world_status",
        "grid_sorted",
        "grid_start",
        "grid_box",
        "grid_found",
        "grid_near",
    ),
    writes=(
        *("npair", "pair_entry", "pair_sorted", "pair_counter", "pair_geom", "pair_number", "pair_slot"),
        "slice_record",
    ),
    scalars=("world",),
    flops=100,
)
COLLIDE = Stage(
    name="collide",
    reads=("geom_xpos", "geom_xmat", "pair_geom", "pair_number", "pair_slot"),
    writes=("pair_ncon", "pair_nrow", "slot_dist", "slot_pos", "slot_frame"),
    collides="any",
    flops=200,
)
COUNT_PAIRS = Stage(
    name="count_pairs",
    reads=(
        *("qpos", "eq_active", "ten_length", "world_status", "npair", "pair_geom", "pair_ncon"),
        "pair_nrow",
    ),
    writes=("pair_first", "ncon", "nefc", "counts"),
    scalars=("shard_size",),
    flops=10,
)
COPY_CONTACTS = Stage(
    name="copy_contacts",
    reads=(
        *("pair_geom", "pair_number", "pair_slot", "pair_ncon", "pair_first"),
        *("slot_dist", "slot_pos", "slot_frame"),
    ),
    writes=("contact_dist", "contact_pos", "contact_frame", "contact_cand", *CONTACT_PARAMETERS),
    flops=10,
)
PAIR_STAGES: tuple[Stage, ...] = (BROADPHASE, SCAN_PAIRS, FIND_PAIRS, COLLIDE, COUNT_PAIRS, COPY_CONTACTS)
