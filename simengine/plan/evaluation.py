"""The plan of one evaluation of the dynamics: its launches in program order, what each works on, and where counts are
read. It is data, made of kernels and counts alone; `simengine.emission` binds it to the memory of a shard.

Who carries a plan out may emit only the launches for which counts say that there is work, or all of them, since kernels
find out themselves.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from simengine.kernels.kernel import Kernel
from simengine.model.model import Model
from simengine.model.table import PAIR_TYPES
from simengine.plan import catalogue
from simengine.plan.islands import for_large, island_solution
from simengine.plan.pairs import PAIR_KERNELS
from simengine.plan.selection import Selection, fields_needed
from simengine.plan.variants import variant_for
from simengine.state.fields import (
    COLUMNS,
    HUGE_ISLANDS,
    ISLAND_ARENAS,
    ISLAND_COLUMNS,
    LARGE_ISLANDS,
    NUM_CLASSES,
    NUM_ISLAND_CLASSES,
    PAIR_ARENAS,
    PAIR_COLUMNS,
    ROW_CLASSES,
)

_CLASS_COLUMNS = (*(f"rows_{bound}" for bound in ROW_CLASSES), "rows_more")


class Count(NamedTuple):
    """Columns of a shard's counts, as kernels write them for the host; what they count is the sum.

    Attributes:
        table: "totals_host", "pair_totals_host" or "island_totals_host".
        first, number: the columns.
    """

    table: str
    first: int
    number: int = 1


class Listed(NamedTuple):
    """Worlds given by a column of counts, and the partition that keeps them apart from the family's other columns.

    Attributes:
        column: of the lists of worlds; empty where the units are islands.
        family: name of the partition.
        member: which part of it.
    """

    column: str
    family: str
    member: int


class Launch(NamedTuple):
    """A launch of a kernel.

    Attributes:
        kernel: what runs.
        counted: how many worlds, islands or slices it is over, where that is counted; else all worlds of the shard.
        listed: which of them, where they are listed.
        nrow: most constraint rows of a world in the call; 0 where rows stay in memory.
        suffix: added to the kernel's name in traces.
        island_class: size class of the islands that it is over.
        ahead: it may be issued before anything is counted, and does nothing where an arena is too small.
    """

    kernel: Kernel
    counted: Count | None = None
    listed: Listed | None = None
    nrow: int = 0
    suffix: str = ""
    island_class: int | None = None
    ahead: bool = False

    @property
    def name(self) -> str:
        """Name of the call in traces."""
        return self.kernel.name + self.suffix


class Await(NamedTuple):
    """Behind it the host knows counts, and arenas have the capacity for what was counted.

    Attributes:
        scan: the kernel that counts, launched before.
        needs: spaces of arenas, and how many entries each must have.
    """

    scan: Kernel
    needs: tuple[tuple[str, Count], ...]


Launches = tuple[Launch | Await, ...]


class Evaluation(NamedTuple):
    """The plan of an evaluation.

    Attributes:
        launches: in program order.
        stored: fields that must reach memory; what else kernels produce stays in their scratch.
        scalars: values of scalar arguments.
    """

    launches: Launches
    stored: frozenset[str]
    scalars: dict[str, int]

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels that may be launched, each once."""
        return _kernels(self.launches)


def plan_evaluation(selection: Selection, rk_stage: int) -> Evaluation:
    """The plan of evaluation `rk_stage` (0 but for Runge-Kutta) with the kernels of a selection."""
    model, ahead = selection.model, selection.ahead

    def over_worlds(kernels: Iterable[Kernel], ahead: bool = ahead) -> Launches:
        return tuple(Launch(kernel, ahead=ahead) for kernel in kernels)

    # The motion without constraints needs no contacts, unless actuators pull at them. Repeating it does no harm where
    # an arena is too small, so that it waits for no count.
    motion = over_worlds(selection.motion(), ahead and model.has_adhesion)
    chosen = (
        *over_worlds(selection.position()),
        *_contacts(selection, motion),
        *_solution(selection),
        *over_worlds(selection.after_solution()),
        *over_worlds(selection.integration()),
        *over_worlds((catalogue.ACTIVATION_KERNEL,) if selection.integrator and model.na else ()),
    )
    launches = tuple(_in_variant(model, item) for item in chosen)
    scalars = {"rk_stage": rk_stage, "rk_last": 3 if selection.integrator == "rk4" else 0}
    return Evaluation(launches, selection.wanted | fields_needed(_kernels(launches)), scalars)


def _in_variant(model: Model, item: Launch | Await) -> Launch | Await:
    return item._replace(kernel=variant_for(model, item.kernel)) if isinstance(item, Launch) else item


def _kernels(launches: Launches) -> tuple[Kernel, ...]:
    return tuple(dict.fromkeys(item.kernel for item in launches if isinstance(item, Launch)))


def _count(column: str) -> Count:
    return Count("totals_host", COLUMNS.index(column))


def _contacts(selection: Selection, motion: Launches) -> Launches:
    """Counting, contacts, and the motion beside them."""
    model, ahead = selection.model, selection.ahead
    scan = catalogue.SCAN_KERNEL
    counted: Launches = (Launch(scan, ahead=ahead),)
    room = Await(scan, (("contact", _count("ncon")), ("row", _count("nefc"))))
    before, after = ((), motion) if model.has_adhesion else (motion, ())
    if not model.finds_pairs:
        return (*counted, *before, room, *_narrowphase(selection), *after)
    broadphase, scan_pairs, find, collide, count, place = (Launch(kernel) for kernel in PAIR_KERNELS)
    table = "pair_totals_host"
    slices = Count(table, PAIR_COLUMNS.index("slices"))
    pairs = Await(scan_pairs.kernel, tuple((space, Count(table, column)) for column, space in enumerate(PAIR_ARENAS)))
    found: Launches = (pairs, find, collide._replace(counted=slices), count)
    return (broadphase, scan_pairs, *before, *found, *counted, room, place._replace(counted=slices), *after)


def _narrowphase(selection: Selection) -> Launches:
    """One launch for all pair types that occur, or one for each."""
    ahead = selection.ahead
    if selection.narrow_in_one:
        return (Launch(selection.narrow()[0], ahead=ahead),)

    def of_type(name: str) -> Listed:
        return Listed(name, "pair type", PAIR_TYPES.index(name))

    return tuple(Launch(k, _count(k.name), of_type(k.name), ahead=ahead) for k in selection.narrow())


def _solution(selection: Selection) -> Launches:
    """Rows and solver, by the size classes of worlds or of islands. What takes longest comes first."""
    model, ahead = selection.model, selection.ahead
    if model.has_islands:
        return _by_islands(model)

    def of(kernel: Kernel, column: str, member: int, size_class: int, suffix: str) -> Launch:
        nrow = 0 if size_class == NUM_CLASSES - 1 else ROW_CLASSES[size_class]
        return Launch(kernel, _count(column), Listed(column, "size class", member), nrow, suffix, ahead=ahead)

    def finish(size_class: int, column: str, member: int, suffix: str) -> Launch:
        kernel = catalogue.finish(selection.integrator, model.solver, size_class == NUM_CLASSES - 1)
        return of(kernel, column, member, size_class, suffix)

    classes = selection.row_classes
    bounded = range(1, min(classes, NUM_CLASSES - 1))
    unbounded = (NUM_CLASSES - 1,) if classes == NUM_CLASSES else ()
    more = tuple(finish(c, _CLASS_COLUMNS[c], c, "") for c in unbounded)
    if selection.merged and bounded:
        # scratch for the rows of the largest class suits all
        return (*more, finish(bounded[-1], "rows_bounded", NUM_CLASSES, "_bounded"))
    free = of(catalogue.advance(selection.integrator, model.solver), "rows_0", 0, 0, "")
    return (*more, *(finish(c, _CLASS_COLUMNS[c], c, f"_{ROW_CLASSES[c]}") for c in reversed(bounded)), free)


def _by_islands(model: Model) -> Launches:
    """Rows, a second count, and the solution island by island."""
    table = "island_totals_host"
    constraint, islands, scan, gather, *solver, scatter = island_solution(model)
    needs = (
        (ISLAND_ARENAS[0], Count(table, 0, NUM_ISLAND_CLASSES)),
        *((space, Count(table, NUM_ISLAND_CLASSES + i)) for i, space in enumerate(ISLAND_ARENAS[1:])),
    )

    def of_class(kernel: Kernel, c: int) -> Launch:
        suffix = ISLAND_COLUMNS[c].removeprefix("islands")
        return Launch(kernel, Count(table, c), Listed("", "island class", c), suffix=suffix, island_class=c)

    def by_class(kernel: Kernel) -> Launches:
        if kernel.unit != "island":
            return (Launch(kernel),)
        large = for_large(kernel)
        dense = tuple(of_class(kernel, c) for c in range(LARGE_ISLANDS))
        beside = () if large is None else (of_class(large, LARGE_ISLANDS), of_class(large, HUGE_ISLANDS))
        return (*dense, *beside)[::-1]

    solve = (by_class(kernel) for kernel in solver if kernel.unit != "large island")
    return (
        *(Launch(constraint), Launch(islands), Launch(scan), Await(scan, needs), Launch(gather)),
        *(launch for launches in solve for launch in launches),
        Launch(scatter),
    )
