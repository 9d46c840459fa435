"""The plan of one evaluation of the dynamics: launches in program order, the units of each, and waits for counts.

The plan is data made of kernels and counts alone. `simengine.emission` binds it to the memory of a shard. It may emit
only the launches that have work by the counts, or all of them: a kernel that has no work ends early.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from simengine.kernels.kernel import Kernel
from simengine.model.pair_types import PAIR_TYPES
from simengine.plan import catalogue, contact_kernels
from simengine.plan.islands import (
    by_block,
    island_solution,
    most_islands,
    scattering,
)
from simengine.plan.large_islands import for_few_large, for_large, for_many_huge
from simengine.plan.launches import Await, Count, Launch, Launches, Listed
from simengine.plan.pairs import PAIR_KERNELS
from simengine.plan.rows_apart import rows_apart
from simengine.plan.selection import Selection, fields_needed
from simengine.plan.stages import INTEGRATORS, SOLVERS, UNCONSTRAINED
from simengine.plan.stored_rows import stored_beyond
from simengine.plan.tiles import in_tiles
from simengine.plan.trees import by_trees
from simengine.plan.variants import (
    along_branches,
    by_warps,
    in_half_warps,
    variant_for,
    with_block_rows,
    with_jacobian_in_memory,
    with_matrix_rows,
    without_cones,
)
from simengine.state.fields import (
    CLASS_COLUMNS,
    FIELD,
    NUM_CLASSES,
    PAIR_ARENAS,
    ROW_CLASSES,
    TOTAL_OF,
    TOTALS,
    WORLD_ARENAS,
)
from simengine.state.island_fields import COLUMN_OF_ARENA, ISLAND_COLUMNS, LARGE_ISLANDS
from simengine.state.pair_fields import PAIR_COLUMNS

SIZE_CLASSES = "size class"
"""The family of the lists of worlds with few or many constraint rows."""


class Evaluation(NamedTuple):
    """The plan of an evaluation.

    Attributes:
        launches: launches and waits, in program order.
        stored: fields that must reach memory. Other fields that kernels produce stay in their scratch.
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
    """Make the plan of an evaluation.

    Args:
        selection: which kernels it launches.
        rk_stage: index of the evaluation in a Runge-Kutta step; 0 for other integrators.
    """
    model, ahead = selection.model, selection.ahead

    def over_worlds(kernels: Iterable[Kernel], ahead: bool = ahead, behind: tuple[str, ...] = ()) -> Launches:
        return tuple(Launch(kernel, ahead=ahead, behind=behind) for kernel in kernels)

    # The motion without constraints needs contacts only if there are adhesion actuators. Otherwise it need not be
    # skipped when an arena is too small, since repeating it gives the same result.
    motion = over_worlds(selection.motion(), ahead and model.has_adhesion, selection.motion_behind)
    solution, after, integration = _solution(selection), selection.after_solution(), selection.integration()
    if model.has_islands and selection.merged and not after and selection.integrator not in ("", "rk4"):
        solution, integration = solution[:-1], tuple(map(scattering, integration))
    chosen = (
        *over_worlds(selection.position()),
        *_contacts(selection, motion),
        *solution,
        *over_worlds(after),
        *over_worlds(integration),
        *over_worlds((catalogue.ACTIVATION_KERNEL,) if selection.integrator and model.na else ()),
    )
    if selection.by_stages:
        chosen = tuple(item for each in chosen for item in _by_stages(each))
    launches = tuple(_in_variant(selection, item) for item in chosen)
    last = 3 if selection.integrator == "rk4" else 0
    scalars = {"parts": selection.search_parts, "rk_stage": rk_stage, "rk_last": last}
    return _storing(Evaluation(launches, selection.wanted | fields_needed(_kernels(launches)), scalars))


def _storing(evaluation: Evaluation) -> Evaluation:
    """The evaluation with the scalars that tell the scan whose rows are in memory."""
    launches = (item for item in evaluation.launches if isinstance(item, Launch))
    return evaluation._replace(scalars=evaluation.scalars | stored_beyond(launches, evaluation.stored))


def only_for(evaluation: Evaluation, wanted: frozenset[str]) -> Evaluation:
    """The evaluation without launches and waits that the wanted fields do not need."""
    needed, kept, arenas = set(wanted), list[Launch | Await](), set[str]()
    counts = False  # whether a launch behind has a number of units that is counted
    for item in reversed(evaluation.launches):
        if isinstance(item, Await):
            if counts or arenas.intersection(space for space, _ in item.needs):
                kept.append(item)
                needed |= {*item.scan.produced, *item.scan.updates}
            continue
        kernel = item.kernel
        changed = {*kernel.produced, *kernel.updates}
        if needed.isdisjoint(changed):
            continue
        kept.append(item)
        used = {*kernel.reads, *kernel.updates, *kernel.addresses}
        needed |= used
        arenas |= {FIELD[name].space for name in used | changed}
        counts = counts or item.counted is not None
    launches = tuple(reversed(kept))
    return _storing(evaluation._replace(launches=launches, stored=wanted | fields_needed(_kernels(launches))))


def _by_stages(item: Launch | Await) -> Launches:
    """A launch for each stage of a kernel over worlds."""
    if isinstance(item, Await) or item.kernel.unit != "world" or len(item.kernel.stages) == 1:
        return (item,)
    # rows are in the arena, since kernels of other stages read them there
    return tuple(item._replace(kernel=catalogue.single(stage), nrow=0) for stage in item.kernel.stages)


def _in_variant(selection: Selection, item: Launch | Await) -> Launch | Await:
    if isinstance(item, Await):
        return item
    kernel = in_tiles(item.kernel) if selection.solves_tiled else item.kernel
    kernel = without_cones(kernel) if selection.without_cones else kernel
    rows = (selection.matrix_rows, selection.dual_rows, selection.branches)
    kinds = {"prisms": selection.spreads_prisms, "eliminates": selection.eliminates}
    chosen = variant_for(selection.model, kernel, *rows, **kinds)
    chosen = by_trees(chosen) if selection.parts_trees else chosen
    return item._replace(kernel=by_block(chosen) if selection.spreads_islands else chosen)


def _kernels(launches: Launches) -> tuple[Kernel, ...]:
    return tuple(dict.fromkeys(item.kernel for item in launches if isinstance(item, Launch)))


def _count(column: str) -> Count:
    return Count("totals_host", TOTALS.index(column))


def _contacts(selection: Selection, motion: Launches) -> Launches:
    """Counts, contacts, and the motion without constraints, which may run at the same time."""
    model, ahead = selection.model, selection.ahead
    scan = contact_kernels.SCAN_KERNEL
    counted: Launches = (Launch(scan, ahead=ahead),)
    room = Await(scan, tuple((space, _count(TOTAL_OF[space])) for space in WORLD_ARENAS))
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
    """The narrowphase: one launch for all pair types that the model can have, or one launch for each."""
    ahead = selection.ahead
    if selection.narrow_in_one:
        return (Launch(selection.narrow()[0], ahead=ahead),)

    def of_type(name: str, kernel: Kernel) -> Launch:
        return Launch(kernel, _count(name), Listed(name, "pair type", PAIR_TYPES.index(name)), ahead=ahead)

    types = (PAIR_TYPES[code] for code in selection.model.pair_codes)
    return tuple(of_type(name, kernel) for name, kernel in zip(types, selection.narrow(), strict=True))


def _solution(selection: Selection) -> Launches:
    """Rows and solver for each size class of worlds or islands. The largest class is launched first.

    It takes longest, and the others can run beside it.
    """
    model, ahead = selection.model, selection.ahead
    if model.has_islands:
        return _by_islands(selection)

    def of(kernel: Kernel, column: str, member: int, size_class: int, suffix: str) -> Launch:
        nrow = 0 if size_class == NUM_CLASSES - 1 else ROW_CLASSES[size_class]
        return Launch(kernel, _count(column), Listed(column, SIZE_CLASSES, member), nrow, suffix, ahead=ahead)

    def finish(size_class: int, column: str, member: int, suffix: str) -> Launches:
        kernel = catalogue.finish(selection.integrator, model.solver, size_class == NUM_CLASSES - 1)
        most_rows = size_class == NUM_CLASSES - 2  # of those in scratch
        if selection.matrix_rows and most_rows and not selection.merges_solvers and kernel.solves_symmetric:
            kernel = with_jacobian_in_memory(kernel)
        kernel = along_branches(kernel) if selection.branches else kernel
        kernel = in_half_warps(kernel) if selection.in_half_warps(size_class) else kernel
        kernels: tuple[Kernel, ...] = (kernel,)
        if selection.makes_rows_apart and size_class < NUM_CLASSES - 1:
            kernels = rows_apart(kernel)
        if warps := selection.warps_of(size_class):
            last = by_warps(kernels[-1], model.nv, warps, selection.in_one_warp(size_class))
            kernels = (*kernels[:-1], last)
        return tuple(of(each, column, member, size_class, suffix) for each in kernels)

    if selection.by_stages:
        return _in_two_classes(selection, of)
    classes = selection.row_classes
    bounded = range(1, min(classes, NUM_CLASSES - 1))
    unbounded = (NUM_CLASSES - 1,) if classes == NUM_CLASSES else ()
    more = tuple(launch for c in unbounded for launch in finish(c, CLASS_COLUMNS[c], c, ""))
    if selection.merges_solvers and bounded:
        # one launch whose scratch holds the rows of the largest bounded class
        return (*more, *finish(bounded[-1], "rows_bounded", NUM_CLASSES, "_bounded"))
    free = of(catalogue.advance(selection.integrator, model.solver), "rows_0", 0, 0, "")
    fewer = (finish(c, CLASS_COLUMNS[c], c, f"_{ROW_CLASSES[c]}") for c in reversed(bounded))
    return (*more, *(launch for launches in fewer for launch in launches), free)


def _in_two_classes(selection: Selection, of: Callable[[Kernel, str, int, int, str], Launch]) -> Launches:
    """Rows and solver for worlds with rows, few or many, then the motion of worlds without any, and the integrator.

    Where the size class decides how many lanes solve a world, each class has kernels of its own.
    """
    integrator, solver = selection.integrator, selection.model.solver
    rows, solve = catalogue.single(catalogue.constraint(solver)), catalogue.single(SOLVERS[solver])
    last = NUM_CLASSES - 1
    classes = [("rows_bounded", NUM_CLASSES)] if selection.row_classes > 1 else []
    if selection.row_classes == NUM_CLASSES:
        classes.append((CLASS_COLUMNS[last], last))
    if selection.solves_by_warps:
        classes = [(CLASS_COLUMNS[c], c) for c in range(1, selection.row_classes)]

    def solves(member: int) -> Kernel:
        warps = selection.warps_of(member)
        return by_warps(solve, selection.model.nv, warps, selection.in_one_warp(member)) if warps else solve

    fused = integrator and catalogue.is_fused(integrator, solver)  # then no kernel of its own follows
    return (
        *(of(kernel, column, member, last, "") for column, member in classes for kernel in (rows, solves(member))),
        of(catalogue.single(UNCONSTRAINED), "rows_0", 0, 0, ""),
        *((Launch(catalogue.single(INTEGRATORS[integrator])),) if fused else ()),
    )


def _by_islands(selection: Selection) -> Launches:
    """Rows, the count of islands, and the solution island by island."""
    table, ahead = "island_totals_host", selection.ahead
    constraint, islands, scan, gather, *solver, scatter = island_solution(selection.model)
    most = most_islands(selection.model)
    needs = tuple((space, Count(table, column)) for space, column in COLUMN_OF_ARENA.items())

    def of_class(kernel: Kernel, c: int) -> Launch:
        if c == LARGE_ISLANDS - 2:  # of more rows than a warp has lanes
            kernel = with_matrix_rows(kernel, selection.island_rows)
        if c == LARGE_ISLANDS - 1:  # of more rows than two in each lane
            kernel = with_block_rows(kernel, selection.block_rows)
        suffix = ISLAND_COLUMNS[c].removeprefix("islands")
        islands = Listed("", "island class", c)
        return Launch(kernel, Count(table, c), islands, 0, suffix, c, most[c], ahead=ahead)

    def by_class(kernel: Kernel) -> Launches:
        if kernel.unit != "island":
            return (Launch(kernel, ahead=ahead),)
        large = for_large(kernel)
        large = for_few_large(large) if large and selection.few_large_islands else large
        huge = for_many_huge(large) if large and selection.pairs_huge_islands else large
        forms = (*[kernel] * LARGE_ISLANDS, large, huge)
        return tuple(of_class(form, c) for c, form in enumerate(forms) if form and most[c])[::-1]

    solve = (by_class(kernel) for kernel in solver if kernel.unit != "large island")
    return (
        *(Launch(kernel, ahead=ahead) for kernel in (constraint, islands, scan)),
        *(Await(scan, needs), Launch(gather, ahead=ahead)),
        *(launch for launches in solve for launch in launches),
        Launch(scatter, ahead=ahead),
    )
