"""Sums over the worlds of a shard: arena addresses and lists of worlds."""

from simengine.physics.stage import Stage

SCAN = Stage(
    name="scan",
    reads=("counts",),
    writes=("con_adr", "efc_adr", "efc_J_adr", "lists", "totals", "totals_host"),
    updates=("progress", "progress_host"),
    scalars=(
        *("begin", "shard_size", "contact_capacity", "row_capacity", "jacobian_capacity"),
        *("row_beyond", "jacobian_beyond"),
    ),
    flops=2,
)
