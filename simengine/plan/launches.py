"""What a plan is made of: launches of kernels, the units of each, and waits for counts."""

from __future__ import annotations

from typing import NamedTuple

from simengine.kernels.kernel import Kernel


class Count(NamedTuple):
    """A number that kernels count for a shard: the sum of some columns of the counts that they write for the host.

    Attributes:
        table: "totals_host", "pair_totals_host" or "island_totals_host".
        first: index of the first column.
        number: how many columns are added.
    """

    table: str
    first: int
    number: int = 1


class Listed(NamedTuple):
    """The worlds in one list, or the islands of one class, as a member of a family of segments.

    Members of a family are disjoint, so that calls over different members do not wait for each other.

    Attributes:
        column: the column of counts whose list of worlds it is; empty for islands.
        family: name of the family.
        member: index of the member in the family.
    """

    column: str
    family: str
    member: int


class Launch(NamedTuple):
    """A launch of a kernel.

    Attributes:
        kernel: the kernel.
        counted: the count that gives the number of worlds, islands or slices; None for all worlds of the shard.
        listed: the worlds or islands of the launch; None for all.
        nrow: largest number of constraint rows of a world in the launch; 0 if the rows are stored in the arena.
        suffix: added to the kernel's name in traces.
        island_class: size class of the islands; None if the units are not islands.
        most_of_a_world: the most units of a world.
        ahead: whether it may be issued ahead of counts. It then does nothing if an arena is too small.
        behind: fields that it does not read, but whose writers it waits for, so that it runs beside later launches.
    """

    kernel: Kernel
    counted: Count | None = None
    listed: Listed | None = None
    nrow: int = 0
    suffix: str = ""
    island_class: int | None = None
    most_of_a_world: int = 1
    ahead: bool = False
    behind: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Name of the call in traces."""
        return self.kernel.name + self.suffix


class Await(NamedTuple):
    """A wait for counts. After it the host knows the counts, and the arenas have capacity for what was counted.

    Attributes:
        scan: the kernel that adds up the counts, which is launched before.
        needs: pairs of an arena's space and the count of entries that the arena must hold.
    """

    scan: Kernel
    needs: tuple[tuple[str, Count], ...]


Launches = tuple[Launch | Await, ...]
