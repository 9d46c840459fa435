"""Fields of worlds whose pairs of geoms a broadphase finds in every step."""

from __future__ import annotations

from simengine.state.field import Field
from simengine.state.field import of_block as _b

# If pairs are found in every step: columns of numbers that `broadphase` counts per world. `pairs` are entries in the
# arena, PAIR_SPARE of which belong to no pair; a slice is a part of a world's pairs.
PAIR_COLUMNS: tuple[str, ...] = ("pairs", "slots", "slices")
PAIR_SPARE = 16
PAIRS_A_SLICE = 32
MAX_NEIGHBOURS = 8
"""Pairs per geom that the broadphase stores; if a geom has more, find_pairs searches for them again."""

PAIR_FIELDS: tuple[Field, ...] = (
    # broadphase: geoms sorted by the grid cell that contains the lower corner of their bounding box
    _b("geom_box", "ngeom", 6, doc="bounding box and margin, world frame: lower corner, upper corner [m]"),
    _b("grid_entry", f"ngeom+{PAIR_SPARE}", 2, doc="cell and geom, while they are sorted", kind="int"),
    _b("grid_sorted", f"ngeom+{PAIR_SPARE}", 2, doc="cell and geom, by cell and then by geom", kind="int"),
    _b("grid_counter", f"ngeom+{PAIR_SPARE}", 4, doc="counts of the sorting", kind="int"),
    _b(
        "grid_start",
        "ngrid+2",
        doc="first index of each cell; large geoms come last but one, geoms that collide with nothing last",
        kind="int",
    ),
    _b("grid_box", "ngeom", 6, doc="geom_box in the order of grid_sorted [m]"),
    _b("grid_found", "ngeom", doc="number of pairs that each entry of grid_sorted finds", kind="int"),
    _b("grid_near", "ngeom", MAX_NEIGHBOURS, doc="the first geoms that each entry of grid_sorted finds", kind="int"),
    Field("pair_counts", "int", (), "pair_column", "the numbers that PAIR_COLUMNS names, per world"),
    Field("pair_totals", "int", (len(PAIR_COLUMNS),), "pair_shard", "sum of each column, on the device"),
    Field("pair_totals_host", "int", (len(PAIR_COLUMNS),), "pair_shard", "the same, where the host can read it"),
    _b("pair_adr", doc="first pair of the world in the arena of pairs", kind="int"),
    _b("slot_adr", doc="first slot of the world", kind="int"),
    _b("slice_adr", doc="first slice of the world", kind="int"),
    _b("npair", doc="pairs of the world", kind="int"),
    Field(
        "pair_entry", "int", (2,), "pair", "the geoms, while they are sorted; an explicit pair k is stored as -1 - k"
    ),
    Field("pair_sorted", "int", (2,), "pair", "the same, sorted"),
    Field("pair_counter", "int", (4,), "pair", "counts of the sorting"),
    Field("pair_geom", "int", (2,), "pair", "geoms in MuJoCo's order of pairs, the lower type first"),
    Field("pair_number", "int", (), "pair", "number of the explicit pair, or -1"),
    Field("pair_slot", "int", (), "pair", "first slot within the world"),
    Field("pair_ncon", "int", (), "pair", "contacts"),
    Field("pair_nrow", "int", (), "pair", "constraint rows of its contacts"),
    Field("pair_first", "int", (), "pair", "first contact within the world"),
    Field("slot_dist", "real", (), "slot", "as contact_dist, where the pair's contacts begin at its first slot"),
    Field("slot_pos", "real", (3,), "slot", "as contact_pos"),
    Field("slot_frame", "real", (9,), "slot", "as contact_frame"),
    Field("slice_record", "int", (4,), "slice", "world, first pair within it, number of pairs, unused"),
)
