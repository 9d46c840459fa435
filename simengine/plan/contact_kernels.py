"""The kernels that find contacts: candidates, searches of convex shapes and of prisms, counts and narrowphase."""

from __future__ import annotations

from dataclasses import replace

from simengine.backends.base import LANES_OF_A_BLOCK
from simengine.kernels.kernel import Kernel
from simengine.model.pair_types import PAIRS
from simengine.physics.collision.collision import (
    COLLISION_COUNT,
    COLLISION_DEPTH,
    COLLISION_DISTANCE,
    COLLISION_GENERAL,
    COLLISION_LIST,
    COLLISION_NEAR,
    COLLISION_TOUCH,
    LIST_CULLED,
)
from simengine.physics.collision.narrowphase import NARROWPHASE
from simengine.physics.collision.prisms.prisms import (
    PRISM_COUNT,
    PRISM_DEPTH,
    PRISM_DISTANCE,
    PRISM_LIST,
    PRISM_STORE,
    PRISM_TOUCH,
)
from simengine.physics.collision.scan import SCAN
from simengine.plan.stages import single

FEWER_PARTS = "FEWER_PARTS"
"""Constant of kernels that have fewer groups of lanes for each world than others: the number by which theirs is
divided. Groups without a search take time to start and to end, too, and those of several lanes are many."""


def parts_of(kernel: Kernel, parts: int) -> int:
    """How many groups of lanes of a kernel work on a world, where `parts` of other kernels do."""
    return parts // dict(kernel.constants).get(FEWER_PARTS, 1)


SCAN_KERNEL = Kernel("scan", (SCAN,), unit="column")
_BLOCKS_OF_CONVEX = 6
"""Blocks of the narrowphase of convex pairs on a multiprocessor. It mostly stores contacts that counting has kept; a
world's search of its own, for pairs beyond those, would have the registers of two."""
NARROW: dict[str, Kernel] = {
    name: Kernel(name, (stage,), min_blocks_per_multiprocessor=_BLOCKS_OF_CONVEX if name == "convex" else 1)
    for name, stage in NARROWPHASE.items()
}
LIGHT = tuple(pair.name for pair in PAIRS if not pair.heavy)
NARROW_IN_EIGHT: dict[str, Kernel] = {
    pair.name: replace(NARROW[pair.name], name=f"{pair.name}_in_eight", own_lanes=8)
    for pair in PAIRS
    if not pair.shared and pair.name != "convex"  # whose contacts are kept from counting
}
"""The same with eight lanes for each world, of which few have a pair of the type: four worlds share a warp."""
NARROW_LIGHT = Kernel("narrow_light", tuple(NARROWPHASE[name] for name in LIGHT))
"""All light pair types in one kernel, for shards so small that a launch costs more than testing for each type."""
NARROW_OWN_ADDRESSES = replace(NARROW_LIGHT, name="narrow_own_addresses", own_addresses=True)
"""The same without waiting for the scan, for still smaller shards: each world adds up the counts of all worlds."""

SEARCHES = (
    single(COLLISION_LIST),
    replace(single(COLLISION_DISTANCE), own_lanes=1, min_blocks_per_multiprocessor=3, constants=(("ALL_INLINE", 1),)),
    replace(
        single(COLLISION_DEPTH),
        queued=3,
        own_lanes=16,
        min_blocks_per_multiprocessor=4,
        constants=(("ALL_INLINE", 1), (FEWER_PARTS, 2)),
    ),
    replace(
        single(COLLISION_TOUCH),
        queued=4,
        own_lanes=1,
        min_blocks_per_multiprocessor=3,
        constants=(("REMEMBERS_VERTICES", 1),),
    ),
    single(COLLISION_COUNT),
)
"""Contact counts as five kernels. The second has several groups of lanes for each world, and those of the third and
fourth take searches of any world from the queue that the second fills."""


_OF_PRISMS = (("SEARCHES_PRISMS", 1),)
PRISMS = (
    single(PRISM_LIST),
    replace(
        single(PRISM_DISTANCE),
        own_lanes=1,
        min_blocks_per_multiprocessor=3,
        constants=(*_OF_PRISMS, ("ALL_INLINE", 1)),
    ),
    replace(
        single(PRISM_DEPTH),
        queued=1,
        own_lanes=16,
        min_blocks_per_multiprocessor=4,
        constants=(*_OF_PRISMS, ("ALL_INLINE", 1)),
    ),
    replace(
        single(PRISM_TOUCH),
        queued=2,
        own_lanes=1,
        min_blocks_per_multiprocessor=3,
        constants=(*_OF_PRISMS, ("REMEMBERS_VERTICES", 1)),
    ),
    replace(single(PRISM_COUNT), min_blocks_per_multiprocessor=6),
)
"""Contacts with height fields, like `SEARCHES`, as five kernels for GPUs. The first lists prisms of the near pairs, and
the last counts contacts. In between, lanes have prisms of any world."""

PRISM_DEPTH_BY_WARP = replace(PRISMS[2], name="prism_depth_by_warp", own_lanes=32)
"""The third of them for few worlds."""

PRISM_TOUCH_IN_EIGHT = replace(PRISMS[3], name="prism_touch_in_eight", own_lanes=8)
"""The fourth of them for very few worlds."""

_OF_MANY = (*PRISMS[3].constants, ("SHORT_QUEUE", 4))
PRISM_TOUCHES_OF_MANY = (
    replace(PRISMS[3], name="prism_touch_short", own_lanes=4, constants=(*_OF_MANY, ("TAKES_SHORT_QUEUES", 1))),
    replace(PRISMS[3], name="prism_touch_long", constants=(*_OF_MANY, ("TAKES_LONG_QUEUES", 1))),
)
"""The fourth of them for more worlds, as two: one for short queues, with four lanes for each prism, and one for the
others. A lane a prism would leave three lanes beside each idle in queues so short, which are spread over warps."""

STORE_PRISMS = Kernel("hfield_of_prisms", (PRISM_STORE,), min_blocks_per_multiprocessor=6)
"""The narrowphase that follows them."""

PRISM_KERNELS = (*PRISMS, PRISM_DEPTH_BY_WARP, PRISM_TOUCH_IN_EIGHT, *PRISM_TOUCHES_OF_MANY, STORE_PRISMS)
"""All of these."""

LIST_BY_BLOCK = replace(
    single(COLLISION_LIST), name="list_by_block", own_lanes=LANES_OF_A_BLOCK, min_blocks_per_multiprocessor=4
)
"""The first of them for few worlds of very many candidate pairs, of which a block lists those that are near."""

LISTING_BY_CLUSTERS = replace(single(LIST_CULLED), name="list_culled", own_lanes=32)
"""The first of them for models whose geoms are in clusters, by a warp, which has the boxes of a world and a bit for
each pair in shared memory. With the last of them it also counts contacts where no pair needs a search."""

CLUSTERS_BY_BLOCK = replace(
    LISTING_BY_CLUSTERS, name="list_culled_by_block", own_lanes=LANES_OF_A_BLOCK, min_blocks_per_multiprocessor=4
)
"""The same by a block, for few worlds."""

LIST_NEAR = replace(SEARCHES[0], name="list_near", constants=(("COUNTS_NEAR", 0),))
"""The first of them without the contacts of pairs that need no search."""

COUNT_NEAR = replace(single(COLLISION_NEAR), name="count_near", own_lanes=1, min_blocks_per_multiprocessor=4)
"""The kernel that counts these in large batches, in which lanes have pairs of any world."""

DISTANCE_IN_EIGHT = replace(
    SEARCHES[1], name="distance_in_eight", own_lanes=8, constants=(*SEARCHES[1].constants, ("SHARES_DISTANCE", 1))
)
"""The second of them for very few worlds, in which eight lanes share a pair."""

DEPTH_BY_WARP = replace(SEARCHES[2], name="depth_by_warp", own_lanes=32, constants=(("ALL_INLINE", 1),))
"""The third of them for few worlds, with a whole warp for each pair, since few of its warps would have another pair."""

TOUCH_IN_EIGHT = replace(SEARCHES[3], name="touch_in_eight", own_lanes=8)
"""The fourth of them for very few worlds: a warp has four searches instead of 32, which often take different ways."""

_OF_SHORT_QUEUES = (("TAKES_SHORT_QUEUES", 1), (FEWER_PARTS, 4), ("SHORT_QUEUE", 4))
TOUCHES_OF_MANY = (
    replace(TOUCH_IN_EIGHT, name="touch_short", constants=(*TOUCH_IN_EIGHT.constants, *_OF_SHORT_QUEUES)),
    replace(SEARCHES[3], name="touch_long", constants=(*SEARCHES[3].constants, ("TAKES_LONG_QUEUES", 1))),
)
"""The fourth of them for more worlds, as two: one for queues in which few searches wait, and one for the others. One of
them has nothing to do."""


COUNTING_BY_WARP = replace(single(COLLISION_GENERAL), name="counting_by_warp", own_lanes=32)
"""Contact counts of a world by a whole warp, for models of few dofs and many pairs."""


COUNTING_IN_EIGHT = replace(single(COLLISION_GENERAL), name="counting_in_eight", own_lanes=8)
"""The same by eight lanes, for many worlds of few pairs, of which very few are near."""
