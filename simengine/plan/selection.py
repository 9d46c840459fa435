"""`Selection`: which kernels an evaluation of a model launches, in which form."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco

from simengine.backends.base import LANE_CLASSES, lanes_for
from simengine.kernels.kernel import Kernel
from simengine.model.model_table import ModelTable
from simengine.model.pair_types import PAIR_TYPES
from simengine.plan import catalogue, contact_kernels, smooth_kernels
from simengine.plan.islands import MOST_FUSED_DOFS, fitting, in_blocks, in_blocks_of_few, island_integrator
from simengine.plan.scratch import works_in_blocks
from simengine.plan.stages import FACTOR_M, SITES
from simengine.plan.tiles import (
    beside_inertia,
    has_tiles,
    integrates_in_tiles,
    integrator_in_tiles,
    moves_in_tiles,
    solves_in_tiles,
    tiled_position,
)
from simengine.plan.trees import has_separate_trees
from simengine.plan.variants import HALF_WARP, WARPS_OF_MANY_ROWS, WARPS_OF_MORE_ROWS, keeps_factor
from simengine.state.fields import FIELD, NUM_CLASSES, ROW_CLASSES, SENSED, entry_shape

MERGED_WORLDS = 2048
"""Up to this many worlds, a launch costs more than the work that one kernel for several size classes wastes."""

MERGED_DUAL_WORLDS = 512
"""The same for PGS with its rows in registers."""

MOST_ROWS_OF_A_WARP = 32
"""Worlds with more rows are solved by several warps, if the backend has them and the solver is for rows of any type."""

MOST_ROWS_OF_A_WARP_AS_TWO = 64
"""Up to so many rows, a single warp may do the work of two, with the same bits."""

FEW_WORLDS_BY_TWO_WARPS = 2048
"""Up to this many worlds, two warps do so, since each world takes less time. More worlds keep a GPU busy by a warp
each, which waits for no other and does once what each of two would do."""

MOST_DOFS_OF_ONE_KERNEL = 40
"""Up to this many dofs in registers, one kernel makes the rows of a world and solves."""

MOST_WORLDS_OF_ONE_KERNEL = 16384
"""It does so for up to this many worlds of more dofs, too: 32,768 worlds take less time with two kernels."""

FEWEST_GEOMS_IN_MEMORY = 64
"""From so many geoms on, a large batch has their frames in memory from the start: they would fill the memory that lanes
share."""

MOST_WORLDS_BY_WARPS = 16384
"""Up to this many worlds, a warp finds the positions of a world of 17 to 32 dofs. Of more, half a warp does."""

MOTION_BEHIND = "search_near"
"""A field of the kernel that lists near pairs: the motion of many worlds comes behind it, beside what follows."""

SPREAD_WORLDS = 512
"""Up to this many worlds, a GPU has lanes to spare for searches, and warps for a world each in a solver."""

MAX_WORLDS_OWN_ADDRESSES = 1024
"""Up to this many worlds, each world adds up the counts of all worlds in less time than waiting for a scan takes."""


FEWEST_ENTRIES_OF_A_BLOCK = 256
"""From so many entries of the Jacobians of tendons and actuators on, a block of a GPU works on those of a world."""

FEWEST_PAIRS_OF_A_BLOCK = 1024
"""From so many candidate pairs on, a block lists those of a world that are near, if worlds are few."""

FEWEST_PAIRS_OF_FEW_WORLDS = 256
"""The same of at most `SPREAD_WORLDS`, which leave most of a GPU idle."""

FEWEST_PAIRS_OF_A_WARP = 256
"""From so many candidate pairs on, a warp counts the contacts of a world. Worlds that share a warp wait for each other
where pairs of one of them are near."""

MOST_PAIRS_IN_EIGHT = 512
"""Up to so many candidate pairs, eight lanes count the contacts of a world of a large batch. With more, they would look
at bounds for longer than a warp takes for the pairs that are near."""

FEWEST_PAIRS_LISTED = 192
"""From so many candidate pairs on, of which none needs a search, kernels of a large batch list those of a world that
are near, and then count the contacts of one pair of any world in each lane."""

GROUPS_OF_SEARCHES = 2**16
"""About so many groups of lanes keep a GPU busy with searches."""

LEAST_PARTS, MOST_PARTS = 8, 32
"""Fewest and most groups of lanes that share the searches of a world."""


MULTIPROCESSORS = 132
"""Of the GPUs that kernels were measured on."""


@dataclass(frozen=True)
class Selection:
    """Selects the kernels of an evaluation.

    Attributes:
        model: model of the worlds.
        worlds: number of worlds in the shard.
        integrator: name of the integrator, or empty to integrate nothing.
        wanted: derived fields that must be valid in memory afterwards.
        ahead: whether calls are issued ahead of counts.
        matrix_rows: rows of the matrices that kernels hold in registers, two in each lane; 0 if they hold none so.
        island_rows: the most rows of such a matrix of an island; 0 if solvers of islands hold none so.
        block_rows: the most rows of a matrix of an island of which each lane of a block holds one; 0 if none does.
        dual_rows: the most rows of an island that PGS has in registers; 0 if it has none there.
        tiles: whether worlds may share tiles.
        branches: whether matrices have entries along the branches of trees only.
        lengths_by_block: whether a block of a GPU works on the tendons and actuators of a world.
        warps: whether several warps may solve a world.
        lists_by_block: whether a block lists the near pairs of a world of a small shard.
        spreads_searches: whether a search for contacts has more lanes in a small shard.
        counts_by_warp: whether a warp counts the contacts of a world that has fewer lanes otherwise.
        culls: whether pairs of geoms are looked at only where clusters of geoms meet.
        rows_apart: whether rows may have a kernel of their own before that of the solver.
        leaves_out_cones: whether kernels lack the code for elliptic cones if the model has none.
        by_stages: whether each stage has a kernel of its own.
        in_lanes: whether lanes of a GPU share a world.
    """

    model: ModelTable
    worlds: int
    integrator: str
    wanted: frozenset[str]
    ahead: bool
    matrix_rows: int = 0
    island_rows: int = 0
    block_rows: int = 0
    dual_rows: int = 0
    tiles: bool = False
    branches: bool = False
    lengths_by_block: bool = False
    warps: bool = False
    lists_by_block: bool = False
    spreads_searches: bool = False
    counts_by_warp: bool = False
    culls: bool = False
    rows_apart: bool = False
    leaves_out_cones: bool = False
    by_stages: bool = False
    in_lanes: bool = False

    @property
    def merged(self) -> bool:
        """Whether one launch does what several do for more worlds: every launch is issued anyway.

        It serves all bounded size classes, and light pair types. Stages of worlds that are solved by islands share a
        kernel, of which a multiprocessor then has room for fewer worlds.
        """
        fits = not self.model.has_islands or (self.spreads_searches and not works_in_blocks(self.model))
        return self.ahead and fits and self.worlds <= MERGED_WORLDS

    @property
    def tiled(self) -> bool:
        """Whether tiled kernels compute the motion."""
        return self.tiles and has_tiles(self.model)

    @property
    def solves_tiled(self) -> bool:
        """Whether tiled kernels solve."""
        return self.tiles and solves_in_tiles(self.model)

    @property
    def merges_solvers(self) -> bool:
        """Whether one launch solves all bounded size classes.

        With rows in registers, scratch grows with the square of the rows: few worlds with room for the most rows are on
        a multiprocessor at once. Worlds of many rows may have more lanes than others.
        """
        few = not self.dual_rows or self.worlds <= MERGED_DUAL_WORLDS
        return self.merged and few and not self.solves_by_warps

    @property
    def solves_by_warps(self) -> bool:
        """Whether several warps solve worlds with many rows, which the model can have."""
        return self.warps and self.model.nefc_max > MOST_ROWS_OF_A_WARP

    def warps_of(self, size_class: int) -> int:
        """How many warps solve a world of a size class of rows together; 0 for the lanes that all its kernels have."""
        if not self.solves_by_warps or ROW_CLASSES[min(size_class, NUM_CLASSES - 2)] <= MOST_ROWS_OF_A_WARP:
            return 0
        return WARPS_OF_MORE_ROWS if size_class == NUM_CLASSES - 1 else WARPS_OF_MANY_ROWS

    def in_one_warp(self, size_class: int) -> bool:
        """Whether one warp does the work of those that `warps_of` gives a size class."""
        few = self.worlds <= FEW_WORLDS_BY_TWO_WARPS
        return not few and size_class < NUM_CLASSES - 1 and ROW_CLASSES[size_class] <= MOST_ROWS_OF_A_WARP_AS_TWO

    def in_half_warps(self, size_class: int) -> bool:
        """Whether half a warp solves a world of a size class, with a row in each lane and the bits of a whole warp."""
        fits = size_class < NUM_CLASSES - 1 and ROW_CLASSES[size_class] <= HALF_WARP
        return self.dual_rows > 0 and fits and self.model.nv <= 2 * HALF_WARP

    @property
    def makes_rows_apart(self) -> bool:
        """Whether rows have a kernel of their own before that of the solver: both are long, and worlds are many."""
        large = self.matrix_rows > MOST_DOFS_OF_ONE_KERNEL and self.worlds > MOST_WORLDS_OF_ONE_KERNEL
        return self.rows_apart and (large or (self.branches and self.worlds > MERGED_WORLDS))

    @property
    def without_cones(self) -> bool:
        """Whether solvers lack the code for elliptic cones, and do not keep the second derivatives of their cost."""
        pyramidal = self.model.opt_cone != int(mujoco.mjtCone.mjCONE_ELLIPTIC)
        return self.leaves_out_cones and pyramidal and "efc_weight" not in self.wanted

    @property
    def row_classes(self) -> int:
        """Number of size classes of constraint rows that the model can reach."""
        return next((c + 1 for c, bound in enumerate(ROW_CLASSES) if self.model.nefc_max <= bound), NUM_CLASSES)

    @property
    def senses_forces(self) -> bool:
        """Whether accelerations and forces of bodies are wanted, as fields or by sensors."""
        sensed = "sensordata" in self.wanted and self.model.senses("acc")
        return bool(self.wanted & {"cacc", "cfrc_int"}) or sensed

    def position(self) -> tuple[Kernel, ...]:
        """Guard, kinematics and contact counts.

        They are two kernels if launches are merged, so that the motion does not wait for the counts, or if the first is
        tiled. Counting is five if pairs need a search, so that worlds with many searches do not take long.
        """
        general = self.model.general_position
        if self.tiled:
            return tiled_position(self.model, self._reads_sites)
        if self.lengths_by_block:
            counts = self._searches if self._searches_apart else (catalogue.single(catalogue.COLLISION_GENERAL),)
            poses = catalogue.POSES_SITES if self._reads_sites else catalogue.POSES
            return (poses, catalogue.TENDONS_BY_BLOCK, *counts)
        if self._searches_apart and not works_in_blocks(self.model):
            return (*self._fitting(self._poses), *self._searches)
        if self.counts_by_warp and general and not works_in_blocks(self.model):
            return (*self._fitting(self._poses), contact_kernels.COUNTING_BY_WARP)
        if self.in_eight and general and 0 < self.model.ncand <= MOST_PAIRS_IN_EIGHT:
            return (*self._fitting(self._poses), contact_kernels.COUNTING_IN_EIGHT)
        if self.merged:
            return catalogue.position_in_two(general, self._reads_sites)
        plain = not general and not self.model.has_islands and self.model.nv <= 2 * HALF_WARP
        if self.in_eight and plain and self.worlds > MOST_WORLDS_BY_WARPS:
            return (catalogue.POSITION_IN_SIXTEEN,)
        position = catalogue.position(general, self._reads_sites)
        return self._fitting(catalogue.in_parts(position) if self._in_parts else position)

    @property
    def _in_parts(self) -> bool:
        """Whether kinematics has in scratch one part after another, so that more worlds are on a GPU at once."""
        return self.spreads_searches and self.worlds > MERGED_WORLDS and not self.model.has_islands

    @property
    def _poses(self) -> Kernel:
        """The kernel of positions alone. Without sites and tendons it has half of the code, and less scratch."""
        poses = catalogue.poses(self._reads_sites or self.model.ntendon > 0, self._reads_sites)
        many = self.culls or (self._in_parts and self.model.ngeom >= FEWEST_GEOMS_IN_MEMORY)
        if many and not self.model.has_islands:
            poses = catalogue.with_geoms_in_memory(poses)
        return catalogue.in_parts(poses) if self._in_parts else poses

    @property
    def _searches(self) -> tuple[Kernel, ...]:
        """The kernels that count contacts where pairs need a search, or are listed by clusters."""
        _, distance, depth, touch, last = contact_kernels.SEARCHES
        if not self.model.nsearch:
            return (*self._listing, *self._prisms, last)
        if not self.spreads_searches:
            return (*self._listing, distance, depth, touch, last)
        depth = contact_kernels.DEPTH_BY_WARP if self.worlds <= MERGED_WORLDS else depth
        few = self.worlds <= SPREAD_WORLDS
        distance = contact_kernels.DISTANCE_IN_EIGHT if few else distance
        touches = (contact_kernels.TOUCH_IN_EIGHT,) if few else contact_kernels.TOUCHES_OF_MANY
        return (*self._listing, distance, depth, *touches, *self._prisms, last)

    @property
    def _listing(self) -> tuple[Kernel, ...]:
        """The kernels that list near pairs, and count contacts of those that need no search."""
        few = self.worlds <= MERGED_WORLDS
        by_block = self.lists_by_block and few
        if self.culls:
            return (contact_kernels.CLUSTERS_BY_BLOCK if by_block else contact_kernels.LISTING_BY_CLUSTERS,)
        if by_block:
            return (contact_kernels.LIST_BY_BLOCK,)
        if few or not self.spreads_searches:
            return (contact_kernels.SEARCHES[0],)
        return (contact_kernels.LIST_NEAR, *((contact_kernels.COUNT_NEAR,) if self.model.counts_near else ()))

    @property
    def _searches_apart(self) -> bool:
        """Whether kernels of their own list and search pairs."""
        return self.culls or self.model.nsearch > 0 or self.spreads_prisms or self._counts_any_world

    @property
    def _counts_any_world(self) -> bool:
        """Whether lanes count contacts of any world, though no pair needs a search."""
        many = self.spreads_searches and self.worlds > MERGED_WORLDS and self.model.general_position
        return many and not self.model.finds_pairs and self.model.ncand >= FEWEST_PAIRS_LISTED

    @property
    def spreads_prisms(self) -> bool:
        """Whether lanes have prisms of height fields of any world."""
        return self.spreads_searches and self.model.nprism > 0 and not works_in_blocks(self.model)

    @property
    def _prisms(self) -> tuple[Kernel, ...]:
        """The kernels that count contacts with height fields, where lanes have prisms of any world."""
        if not self.spreads_prisms:
            return ()
        first, distance, depth, _, last = contact_kernels.PRISMS
        depth = contact_kernels.PRISM_DEPTH_BY_WARP if self.worlds <= MERGED_WORLDS else depth
        few = self.worlds <= SPREAD_WORLDS
        touches = (contact_kernels.PRISM_TOUCH_IN_EIGHT,) if few else contact_kernels.PRISM_TOUCHES_OF_MANY
        return (first, distance, depth, *touches, last)

    @property
    def _reads_sites(self) -> bool:
        """Whether somebody reads the frames of sites: actuators, sensors, or whom the step returns to."""
        return self.model.has_site_actuators or bool(self.wanted & {*SITES.writes, *SENSED})

    @property
    def search_parts(self) -> int:
        """How many groups of lanes share the searches of a world; a multiple of four, since some kernels have fewer."""
        return min(MOST_PARTS, max(LEAST_PARTS, GROUPS_OF_SEARCHES // self.worlds // 4 * 4))

    @property
    def motion_behind(self) -> tuple[str, ...]:
        """Fields that the motion waits for without reading them.

        Where lanes count contacts of any world, the kernels that do so are ready with the motion then, and a GPU starts
        them first. Otherwise they would wait until most blocks of the motion have run, and all that needs contacts with
        them.
        """
        counts = contact_kernels.COUNT_NEAR in self.position() and not self.model.has_adhesion
        return (MOTION_BEHIND,) if counts else ()

    def motion(self) -> tuple[Kernel, ...]:
        """The motion without constraints, and the wanted fields that follow from it."""
        sensing = (self._sense_motion(),) if self.wanted & SENSED else ()
        if "sensordata" in self.wanted and self.model.senses("distance"):
            sensing = (*sensing, catalogue.SENSE_DISTANCE)
        factor = (catalogue.single(FACTOR_M),) if self._factors_apart else ()
        damped = (catalogue.EULER_FACTOR_KERNEL,) if self.factors_beside_solver else ()
        return (*self._smooth(), *factor, *damped, *self.on_demand(), *sensing)

    @property
    def factors_beside_solver(self) -> bool:
        """Whether the matrix of Euler's method is factored beside the solver, which few worlds leave room for."""
        alone = self.integrator == "euler" and not catalogue.is_fused(self.integrator, self.model.solver)
        few = self.spreads_searches and self.worlds <= SPREAD_WORLDS
        return few and alone and self.branches and bool(self.model.opt_eulerdamp)

    @property
    def _factors_apart(self) -> bool:
        """Whether somebody wants the dense factor of the inertia, which no other kernel needs."""
        return self._unfactored and "qLD" in self.wanted

    @property
    def _unfactored(self) -> bool:
        """Whether the acceleration needs no factor of the inertia: its matrix is along branches, or in registers."""
        return self.branches or self.eliminates

    @property
    def eliminates(self) -> bool:
        """Whether lanes eliminate the inertia in registers, where nobody but the acceleration reads a factor of it."""
        fits = self.in_lanes and not self.model.has_islands and self.model.nv <= LANE_CLASSES[-1]
        return (fits or self.matrix_rows > 0) and not keeps_factor(self.model)

    @property
    def parts_trees(self) -> bool:
        """Whether lanes solve the systems of trees side by side where no row couples them.

        Up to half a warp has too few columns to leave out for the look at the rows to pay.
        """
        return self.in_lanes and self.model.nv > HALF_WARP and has_separate_trees(self.model)

    @property
    def spreads_islands(self) -> bool:
        """Whether blocks work on worlds that are solved by islands: a warp for each would leave most of a GPU idle."""
        few = self.spreads_searches and self.worlds <= SPREAD_WORLDS
        return few and self.model.has_islands and not works_in_blocks(self.model)

    @property
    def few_large_islands(self) -> bool:
        """Whether a GPU holds a large island of each world at once, with all registers that its threads ask for."""
        return self.spreads_searches and self.worlds <= SPREAD_WORLDS

    @property
    def pairs_huge_islands(self) -> bool:
        """Whether a multiprocessor holds two huge islands: one would leave a second round to other worlds."""
        return self.spreads_searches and self.worlds > MULTIPROCESSORS

    @property
    def moves_in_three(self) -> bool:
        """Whether inertia and forces have kernels of their own.

        Where launches are merged, the two run at once. In worlds of many dofs each has less scratch than both in one.
        """
        return self.merged or self.branches or (self.eliminates and self.matrix_rows > 0)

    @property
    def moves_in_blocks(self) -> bool:
        """Whether a block makes the inertia of each world: a warp for each would leave most of a GPU idle."""
        few = self.spreads_searches and self.worlds <= SPREAD_WORLDS
        return few and self.branches and self.model.general_smooth

    def _smooth(self) -> tuple[Kernel, ...]:
        model = self.model
        if self.tiled and moves_in_tiles(model):
            return ()
        before = (catalogue.ACTUATORS_BY_BLOCK,) if self.lengths_by_block else ()
        if self.moves_in_three and not model.has_adhesion:
            three = smooth_kernels.smooth_in_three(model.general_smooth, model.has_fluid, self.lengths_by_block)
            if self.moves_in_blocks:
                beside = self.lengths_by_block and not model.ngravcomp and "qfrc_gravcomp" not in self.wanted
                forces = smooth_kernels.FORCES_BESIDE if beside else three[1]
                three = (smooth_kernels.INERTIA_BY_BLOCK, forces, three[-1])
            return (*before, *(map(in_blocks_of_few, three) if model.has_islands else three))
        if self.lengths_by_block:
            return (*before, catalogue.SMOOTH_DRIVEN)
        kernel = smooth_kernels.smooth(model.general_smooth, model.has_fluid, model.has_adhesion)
        kernels = beside_inertia(model, kernel) if self.tiled else (kernel,)
        return tuple(form for each in kernels for form in self._fitting(each))

    def _fitting(self, kernel: Kernel) -> tuple[Kernel, ...]:
        """The kernel, or one for each of its stages; a GPU runs those of few dofs, or of few worlds, in one."""
        few_dofs = self.spreads_searches and self.model.nv <= MOST_FUSED_DOFS
        return fitting(self.model, kernel, few_dofs or self.merged)

    def _sense_motion(self) -> Kernel:
        return in_blocks(catalogue.SENSE_MOTION) if self.model.has_islands else catalogue.SENSE_MOTION

    @property
    def narrow_in_one(self) -> bool:
        """Whether one kernel finds all contacts: launches are merged, and there are several pair types, all light."""
        names = {PAIR_TYPES[code] for code in self.model.pair_codes}
        several = len(names) > 1 and names <= set(contact_kernels.LIGHT)
        return self.merged and several and not self.model.finds_pairs

    @property
    def in_eight(self) -> bool:
        """Whether eight lanes find the contacts of a world: a warp of a large batch would leave most lanes idle."""
        wide = lanes_for(self.model.nv) == LANE_CLASSES[-1] and not works_in_blocks(self.model)
        return self.spreads_searches and self.worlds > MERGED_WORLDS and wide and not self.model.finds_pairs

    def narrow(self) -> tuple[Kernel, ...]:
        """Kernels that find the contacts of the candidate pairs in the model table."""
        if self.narrow_in_one:
            return (
                contact_kernels.NARROW_OWN_ADDRESSES
                if self.worlds <= MAX_WORLDS_OWN_ADDRESSES
                else contact_kernels.NARROW_LIGHT,
            )
        kernels = {
            **contact_kernels.NARROW,
            **({"hfield": contact_kernels.STORE_PRISMS} if self.spreads_prisms else {}),
        }
        if self.in_eight:
            kernels |= contact_kernels.NARROW_IN_EIGHT
        return tuple(kernels[PAIR_TYPES[code]] for code in self.model.pair_codes)

    def after_solution(self) -> tuple[Kernel, ...]:
        """Kernels between the solver and the integrator."""
        model = self.model
        forces = "cfrc_ext" in self.wanted or self.senses_forces
        general = model.has_general_rows or model.finds_pairs
        return (
            *((catalogue.NOSLIP_KERNEL,) if model.opt_noslip_iterations else ()),
            *((catalogue.post(general),) if forces else ()),
            *((catalogue.TENDON_POST,) if forces and model.npath else ()),
            *((catalogue.SENSE_FORCES,) if self.senses_forces else ()),
        )

    def integration(self) -> tuple[Kernel, ...]:
        """The kernel of the integrator, unless it is fused with the solver."""
        model = self.model
        if self.in_lanes and self.integrator == "implicitfast" and model.damps_single_dofs:
            return (catalogue.DIAGONAL_KERNEL,)
        if self.factors_beside_solver:
            return (catalogue.EULER_FACTORED_KERNEL,)
        by_blocks, whole = island_integrator, catalogue.integrate
        kernels = by_blocks(self.integrator) if model.has_islands else whole(self.integrator, model.solver)
        return tuple(map(integrator_in_tiles, kernels)) if self.tiles and integrates_in_tiles(model) else kernels

    def on_demand(self) -> tuple[Kernel, ...]:
        """Kernels that are launched only because a field that they produce is wanted."""
        model = self.model
        general = (
            catalogue.position(model.general_position),
            smooth_kernels.smooth(model.general_smooth, model.has_fluid, model.has_adhesion),
        )
        there = {name for kernel in general for name in kernel.produced}
        sensing = catalogue.SENSE_MOTION.reads if self.wanted & SENSED else ()
        wanted, found = {*self.wanted, *sensing}, list[Kernel]()
        for kernel in reversed(catalogue.ON_DEMAND):
            missing = wanted.intersection(kernel.produced) - there
            if any(0 not in entry_shape(FIELD[name], model.sizes) for name in missing):
                chosen = in_blocks(kernel) if model.has_islands else kernel
                found.append(chosen)
                wanted.update(chosen.reads)
        return tuple(reversed(found))


def fields_needed(kernels: tuple[Kernel, ...]) -> frozenset[str]:
    """Fields that some kernel reads from memory, so that the kernels that produce them must store them."""
    return frozenset(n for k in kernels for n in (*k.reads, *k.updates, *k.addresses))
