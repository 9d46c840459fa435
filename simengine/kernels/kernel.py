"""`Kernel`: one or several stage bodies fused into one launch, and where each of its fields is stored.

A field that a body of the kernel produces is held in the world's scratch (shared memory on the GPU) while later bodies
use it. It is copied to global memory only if its argument is not null. So the same compiled kernel serves `forward()`,
which stores every field, and `step()`, which stores what the next step needs. Fused and unfused kernels give the same
bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod

from simengine.kernels.placing import ScratchItem, ScratchPlan, place_items
from simengine.model.blocks import branch_words
from simengine.model.clusters import bit_words
from simengine.model.table import resolve
from simengine.physics.stage import Dims, Stage
from simengine.state.fields import ADDRESS_OF, COLUMNS_OF, CONTACT_PARAMETERS, FIELD, ROW_SPACES, padded
from simengine.state.island_fields import (
    FACTOR_SIDE,
    MOST_BLOCKS_OF_FACTOR,
    MOST_FACTORED_BLOCKS,
    MOST_LARGE_DOFS,
    USUAL_BLOCKS_OF_ROW,
)

_WARP = 32
_MOST_BOUNDS = 256  # geoms whose bounding spheres lanes share, as in bounds.cuh


def factor_words(sizes: Mapping[str, int]) -> int:
    """Words of BlockFactor (large_factor.cuh) for islands of a model; 0 if they have none."""
    if sizes.get("nwidest", FACTOR_SIDE + 1) > FACTOR_SIDE or sizes["nv"] > MOST_LARGE_DOFS:
        return 0
    most = min(sizes["nblock"], MOST_FACTORED_BLOCKS)
    blocks = min(most * (most + 1) // 2, USUAL_BLOCKS_OF_ROW * most, MOST_BLOCKS_OF_FACTOR)
    of_order = 8 * MOST_FACTORED_BLOCKS + 4 * (MOST_FACTORED_BLOCKS + 2) + 3 * MOST_FACTORED_BLOCKS
    return FACTOR_SIDE**2 * blocks + padded(FACTOR_SIDE * most) + padded((of_order + MOST_BLOCKS_OF_FACTOR) // 4)


@dataclass(frozen=True)
class Kernel:
    """A launchable kernel.

    Attributes:
        name: name of the compiled function.
        stages: the bodies, in order.
        direct: produced fields that bodies write to global memory directly; their arguments must not be null. None
            means all of them, as for a single stage.
        preload: fields read by several bodies, of which the GPU holds a copy in scratch.
        unit: what one group of lanes works on: "world"; "column" for the scans; "slice" of the pairs of a world;
            "island" or "large island" for solvers, whose fields are then those of one island; or "step" of a world, for
            a `StepKernel`.
        own_contact_parameters: whether each contact may have its own parameters (friction, solref and so on) in contact
            arrays. If the launch passes these arrays, the bodies read them through the accessors of the table of
            candidate pairs. Solvers of islands always support this.
        block_per_unit: whether, on the GPU, a whole block of threads works on a unit.
        own_lanes: lanes of a GPU that work on a unit, whatever the model; 0 if the model decides. With more than a warp
            has, they are a block, with the unit's scratch in shared memory.
        own_addresses: whether each world computes the address of its contacts itself, from the counts of all worlds of
            the shard, instead of waiting for the scan; the kernel does nothing if the arena's capacity is too small.
        min_blocks_per_multiprocessor: blocks of 128 threads that a multiprocessor should hold at once, which limits the
            registers per thread.
        constants: names and values of constants that the sources define otherwise, or not at all.
        tiled_from: the first body that the host runs for a tile of worlds at once, with one world in each entry of its
            vectors; None if it runs all bodies for one world after another. From this body on, no body branches on real
            numbers of a world.
        queued: from how many lines of the shard's queue of searches groups of lanes take what they work on; 0 for
            kernels that do not read it, whose groups have the unit of their place.
        min_blocks_of_eight_lanes: `min_blocks_per_multiprocessor` where a unit has eight lanes; None if it is the same.
    """

    name: str
    stages: tuple[Stage, ...]
    direct: frozenset[str] | None = None
    preload: frozenset[str] = frozenset()
    unit: str = "world"
    min_blocks_per_multiprocessor: int = 1
    own_contact_parameters: bool = False
    block_per_unit: bool = False
    own_lanes: int = 0
    own_addresses: bool = False
    constants: tuple[tuple[str, int], ...] = ()
    tiled_from: int | None = None
    queued: int = 0
    min_blocks_of_eight_lanes: int | None = None

    def __hash__(self) -> int:
        return hash(self.name)  # equal kernels have one name, and tables of kernels are asked very often

    @property
    def on_islands(self) -> bool:
        """Whether the unit is an island of any size."""
        return self.unit in ("island", "large island")

    @cached_property
    def produced(self) -> tuple[str, ...]:
        """Fields that a body of the kernel writes, in order."""
        return tuple(dict.fromkeys(name for stage in self.stages for name in stage.writes))

    @cached_property
    def reads(self) -> tuple[str, ...]:
        """Fields that the kernel reads from memory and does not change."""
        made = set(self.produced) | {name for stage in self.stages for name in stage.updates}
        names = [n for stage in self.stages for n in stage.reads if n not in made]
        return tuple(dict.fromkeys([*names, *(("counts",) if self.own_addresses else ())]))

    @cached_property
    def updates(self) -> tuple[str, ...]:
        """Fields that the kernel reads and writes in memory."""
        return tuple(dict.fromkeys(n for stage in self.stages for n in stage.updates if n not in self.produced))

    @cached_property
    def touched(self) -> tuple[tuple[str, str, bool], ...]:
        """The fields among the arguments, in order: the name, the stored field, and whether the kernel produces it."""
        own = (*((name, False) for name in self.reads), *((name, True) for name in self.produced))
        return tuple((name, self.stored_as(name), made) for name, made in (*own, *((n, False) for n in self.updates)))

    @cached_property
    def in_scratch(self) -> tuple[str, ...]:
        """Produced fields that are held in scratch."""
        if self.direct is None:
            return ()
        return tuple(name for name in self.produced if name not in self.direct)

    @cached_property
    def addresses(self) -> tuple[str, ...]:
        """Address fields that the arenas of this kernel need, other than those it reads anyway."""
        if self.unit not in ("world", "slice"):
            return ()
        used = {FIELD[n].space for n in (*self.reads, *self.produced, *self.updates, *self.parameters)}
        wanted = [
            name
            for space, name in ADDRESS_OF.items()
            if space in used and not (self.own_addresses and space == "contact")
        ]
        return tuple(n for n in wanted if n not in self.reads)

    @property
    def columns(self) -> int:
        """The number of sums that a scan makes."""
        return next(len(COLUMNS_OF[FIELD[n].space]) for n in self.produced if FIELD[n].space.endswith("shard"))

    @property
    def in_blocks(self) -> bool:
        """Whether a block of a GPU works on a unit, whatever the model, with the unit's scratch in shared memory."""
        return self.own_lanes > _WARP

    @property
    def in_parts(self) -> bool:
        """Whether several groups of lanes work on a world, each on a part of its work."""
        return any("part" in stage.scalars for stage in self.stages)

    @property
    def queue(self) -> str:
        """Name of the field with the queue from which groups of lanes take what they work on, if the kernel has one."""
        return next(name for name in self.reads if FIELD[name].space == "queue")

    @property
    def solves_symmetric(self) -> bool:
        """Whether a body solves systems with a symmetric matrix of the size of nv."""
        return any(stage.symmetric for stage in self.stages)

    @property
    def matrix_rows(self) -> int:
        """Rows of the matrices that lanes hold in registers, two rows each; 0 if they hold one row, or none."""
        return dict(self.constants).get("MATRIX_ROWS", 0)

    @property
    def block_rows(self) -> int:
        """Rows of the matrices of which each lane of a block holds one in registers; 0 if there are none."""
        return dict(self.constants).get("BLOCK_ROWS", 0)

    @property
    def has_cones(self) -> bool:
        """Whether the kernel has code for elliptic cones, if its stages have any."""
        return dict(self.constants).get("HAS_CONES", 1) == 1

    @property
    def along_branches(self) -> bool:
        """Whether symmetric matrices have entries along the branches of trees only, with all of them in scratch."""
        return "BRANCH_ROWS" in dict(self.constants)

    @property
    def solver_warps(self) -> int:
        """Warps that solve a world of many rows together; 0 for a single group of lanes."""
        return dict(self.constants).get("SOLVER_WARPS", 0)

    @property
    def goes_on(self) -> bool:
        """Whether a block of a GPU takes one unit after another, so that some blocks serve any number of units.

        A launch over worlds of many rows has room for all worlds, and mostly none is in its list.
        """
        return self.in_blocks and self.solver_warps > 0

    @property
    def dual_rows(self) -> int:
        """The most constraint rows of an island that PGS solves with its rows in registers; 0 if it never does."""
        return dict(self.constants).get("PGS_ROWS", 0)

    @property
    def parameters(self) -> tuple[str, ...]:
        """Fields with the parameters of contacts; either all of them are null or none is."""
        return CONTACT_PARAMETERS if self.own_contact_parameters or self.on_islands else ()

    @cached_property
    def island_scratch(self) -> tuple[str, ...]:
        """Working arrays of solvers that are in global memory if the unit is an island, as matrices in memory are."""
        own = {name for stage in self.stages for name, _ in stage.scratch}
        in_memory = self.on_islands and not self.matrix_rows and not self.block_rows
        return ("island_hessian",) if in_memory and "hessian" in own else ()

    def stored_as(self, name: str) -> str:
        """The stored field that a field of the bodies refers to: if the unit is an island, the island's field."""
        if not self.on_islands or name in ("contact_cand", "qM_blocks", "qLD_blocks") or name.startswith("island_"):
            return name
        return "island_record" if name == "nefc" else f"island_{name}"

    @cached_property
    def scalars(self) -> tuple[str, ...]:
        """Integer launch arguments of the bodies, without those that every unit knows or computes itself."""
        known = ("world", "part", *(("begin", "n") if self.unit != "column" else ()))
        names = [name for stage in self.stages for name in stage.scalars if name not in known]
        names += ["parts"] * bool(self.queued)
        return tuple(dict.fromkeys([*names, *(("shard_size", "contact_capacity") if self.own_addresses else ())]))

    @cached_property
    def scratch_items(self) -> tuple[ScratchItem, ...]:
        """Fields and working arrays in scratch, with their lifetimes."""
        last_reader = {n: i for i, stage in enumerate(self.stages) for n in stage.reads}
        items = [ScratchItem(name, 0, last_reader[name]) for name in self.reads if name in self.preload]
        for name in self.in_scratch:
            users = [i for i, stage in enumerate(self.stages) if name in stage.fields]
            items.append(ScratchItem(name, users[0], users[-1]))
        for i, stage in enumerate(self.stages):
            own = (name for name, _ in stage.scratch if f"island_{name}" not in self.island_scratch)
            items += [ScratchItem(f"{stage.name}_{name}", i, i) for name in own]
        return tuple(items)

    def copy_after(self, index: int) -> tuple[str, ...]:
        """Fields in scratch whose value is final after body `index`, to be copied to memory then."""
        last_change = {
            name: max(i for i, s in enumerate(self.stages) if name in s.writes or name in s.updates)
            for name in self.in_scratch
        }
        return tuple(name for name in self.in_scratch if last_change[name] == index)

    def _pull_words(self, nrow: int) -> int:
        """Words of PullMemory (pgs_registers.cuh) for worlds of up to `nrow` rows; 0 if rows are not in registers."""
        rows, lanes = min(nrow, self.dual_rows), self.own_lanes or _WARP
        room = -(-rows // lanes) * lanes
        return (13 + rows) * room + 8 if rows else 0

    def plan_scratch(self, sizes: Mapping[str, int], nrow: int, registers: bool) -> ScratchPlan:
        """Assign offsets to the scratch items so that those live at the same time do not overlap.

        Args:
            sizes: sizes of the model.
            nrow: largest number of constraint rows of a world, for row fields in scratch.
            registers: whether matrices with nv rows are factored in registers, so that no Hessian is needed in scratch.
        """
        memory = 0 if registers else sizes["nv"] ** 2
        if self.solver_warps:  # the lower triangle, through which lanes hand on what they have added up
            memory = sizes["nv"] * (sizes["nv"] + 1) // 2
        # with two rows in a lane, the parts of four rows beyond the first 32 columns
        hessian = 4 * (self.matrix_rows - _WARP) if self.matrix_rows else memory
        if self.block_rows:  # twice four columns and a right side, and the solution
            hessian = 11 * self.own_lanes
        if self.along_branches:
            # constraint rows may join branches; in a world that is not finite, a row may be taken for a longer one
            joined = any("efc_J" in stage.reads for stage in self.stages)
            entries = sizes["njoined"] + padded(sizes["nv"]) if joined else sizes["nbranch"]
            hessian = branch_words(sizes["nv"], entries, sizes["njoineddof" if joined else "nbranchdof"])
        extra = {
            "nvp": padded(sizes["nv"]),
            "nhessian": hessian,
            "npull": self._pull_words(nrow),
            "nfactor": factor_words(sizes),
            "nbounds": 4 * sizes["ngeom"] if sizes.get("ngeom", 0) <= _MOST_BOUNDS else 0,
            "nboxes": 6 * (sizes.get("ncluster", 0) - sizes.get("nstill", 0)),
            "nbits": bit_words(sizes.get("ncand", 0)),
        }
        known, lengths = {**sizes, **extra}, []
        for dims, by_row in self._scratch_dims:
            words = prod(resolve(dims, known)) * (nrow if by_row else 1)
            lengths.append(padded(max(1, words)))
        return place_items(self.scratch_items, tuple(lengths), self._in_place)

    @cached_property
    def _scratch_dims(self) -> tuple[tuple[Dims, bool], ...]:
        """The shape of each scratch item, and whether it has one such entry for each constraint row."""
        working = {f"{stage.name}_{name}": (dims, False) for stage in self.stages for name, dims in stage.scratch}
        stored = {name: (FIELD[name].dims, FIELD[name].space in ROW_SPACES) for name in (*self.reads, *self.in_scratch)}
        dims_of = stored | working
        if not self.has_cones and "efc_weight" in dims_of:
            dims_of["efc_weight"] = ((), True)
        return tuple(dims_of[item.name] for item in self.scratch_items)

    @cached_property
    def _in_place(self) -> frozenset[tuple[str, str]]:
        return frozenset(pair for stage in self.stages for pair in stage.in_place)
