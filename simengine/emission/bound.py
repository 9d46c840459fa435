"""The plan of an evaluation of the dynamics: its calls in program order, what each works on, and where counts are read.

Who carries a plan out may emit only the calls for which counts say that there is work (`simengine.emission.shard`), or
all of them, since kernels find out themselves.
"""

from __future__ import annotations

from typing import NamedTuple

from simengine.emission.calls import SizedCall


class Count(NamedTuple):
    """Columns of a shard's counts, as kernels write them for the host; what they count is the sum.

    Attributes:
        table: "totals_host", "pair_totals_host" or "island_totals_host".
        first, number: the columns.
    """

    table: str
    first: int
    number: int = 1


class Work(NamedTuple):
    """A call.

    Attributes:
        units: how many worlds it is over, or columns for a scan.
        counted: what it is over instead, where that is counted.
    """

    call: SizedCall
    units: int
    counted: Count | None = None


class Room(NamedTuple):
    """Behind it arenas must have room for what was counted.

    Attributes:
        scan: the call that counts.
        needs: spaces of arenas, and how many entries each must have.
    """

    scan: SizedCall
    needs: tuple[tuple[str, Count], ...]


Plan = tuple[Work | Room, ...]
