"""`Backend`: what a backend offers, which is memory, compiled kernels, launches, and advice on executors and shards."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol

import numpy as np

from simengine.kernels.functions import Build
from simengine.model.blocks import MOST_ALONG_BRANCHES
from simengine.model.model_table import ModelTable
from simengine.state.island_fields import FACTOR_SIDE, MOST_FACTORED_BLOCKS
from simengine_scheduler.core import Launch
from simengine_scheduler.launch import BufferSet

LANE_CLASSES: tuple[int, ...] = (8, 16, 32)

NEWTON_SOLVERS = ("solve_newton_unilateral", "solve_newton_general")
"""Names of the solvers with Newton's method: for rows that only push, and for rows of every type."""

_PGS = "solve_pgs"

LANES_OF_A_BLOCK = 128
"""Lanes of kernels in which a block of a GPU works on a world."""


def lanes_for(nv: int) -> int:
    """The number of lanes for nv dofs: the smallest class that has a lane for each row of M, else the largest class."""
    return next((lanes for lanes in LANE_CLASSES if nv <= lanes), LANE_CLASSES[-1])


def matrix_rows_for(nv: int, dtype: str) -> int:
    """nv, if a GPU's kernels hold matrices of this size with two rows in a lane's registers; else 0.

    In float64 so large a matrix does not fit the registers.
    """
    return nv if LANE_CLASSES[-1] < nv <= 2 * LANE_CLASSES[-1] and dtype == "float32" else 0


def block_rows_for(nv: int, dtype: str) -> int:
    """nv, if a block of a GPU holds matrices of this size, with a row in each lane's registers; else 0."""
    return nv if 2 * LANE_CLASSES[-1] < nv <= LANES_OF_A_BLOCK and dtype == "float32" else 0


def dense_islands_for(model: ModelTable, dtype: str) -> int:
    """The most dofs of an island that a GPU solves as a dense problem; 0 for as many as other backends do.

    Islands of small blocks have a sparse factor from 33 dofs on, which has far fewer entries. Others are dense problems
    as long as a block has a lane for each dof, if their rows only push.
    """
    if not model.has_islands or model.solver == _PGS:
        return 0
    if model.sizes["nwidest"] <= FACTOR_SIDE and model.sizes["nblock"] <= MOST_FACTORED_BLOCKS:
        return LANE_CLASSES[-1]
    return LANES_OF_A_BLOCK if model.solver == NEWTON_SOLVERS[0] and dtype == "float32" else 0


def along_branches_for(nv: int) -> bool:
    """Whether a GPU's kernels have matrices of this size with entries along branches: if no registers hold them."""
    return 2 * LANE_CLASSES[-1] < nv <= MOST_ALONG_BRANCHES


def form_on_a_gpu(model: ModelTable, dtype: str) -> ModelTable:
    """The model in its fastest form on a GPU, with dense problems for islands as `dense_islands_for` says.

    A tree that is larger than such a problem would have its directions from conjugate gradients, which take many rounds
    for a long chain. So the world is one problem, if matrices of its size have entries along branches.
    """
    form = model.on_a_gpu()
    most = dense_islands_for(form, dtype)
    by_islands = form.with_dense_islands(most) if most else form
    along_branches = model.solver in NEWTON_SOLVERS and along_branches_for(model.nv)
    outgrown = along_branches and by_islands.sizes["nwidest"] > by_islands.large_island
    return form.as_one_problem() if outgrown else by_islands


def solves_by_warps_for(nv: int, dtype: str) -> bool:
    """Whether several warps of a GPU solve a world of nv dofs with many rows together: if a warp holds the matrix."""
    return nv <= LANE_CLASSES[-1] and dtype == "float32"


DUAL_ROWS = {"float32": 3 * LANE_CLASSES[-1], "float64": 2 * LANE_CLASSES[-1]}
"""The most constraint rows of an island that a GPU's warp holds in registers, by dtype."""


def dual_rows_for(nv: int, dtype: str) -> int:
    """The most rows of an island that PGS has in registers on a GPU; 0 for models with fewer lanes than a warp."""
    return DUAL_ROWS[dtype] if lanes_for(nv) == LANE_CLASSES[-1] else 0


class Candidates(NamedTuple):
    """Executors that may be the fastest.

    Attributes:
        names: names of the executors, the most likely first. If there are several, the first steps are measured.
        reason: why the executor is the fastest, if there is only one; else empty.
    """

    names: tuple[str, ...]
    reason: str


class Extent(NamedTuple):
    """What a launch works on.

    Attributes:
        units: number of worlds or islands, or of columns for a scan.
        lanes: lanes of each unit.
        scratch_bytes: shared memory of each unit [bytes].
        columns: whether the kernel is a scan over columns.
        goes_on: whether a block takes one unit after another, so that some blocks serve any number of them.
    """

    units: int
    lanes: int
    scratch_bytes: int
    columns: bool
    goes_on: bool = False


class StepShape(NamedTuple):
    """How worlds share a block in a kernel of whole steps.

    Attributes:
        warps: warps of a team.
        worlds_in_warp: worlds of a warp.
    """

    warps: int
    worlds_in_warp: int

    @property
    def worlds(self) -> int:
        """Number of worlds of a block."""
        return self.warps * self.worlds_in_warp


class Backend(Protocol):
    """A processor that runs kernel lists. Arrays are in its memory unless stated otherwise."""

    name: str
    wide_lanes: int
    """Lanes of a large world: a whole block on a GPU."""
    island_lanes: tuple[int, int]
    """Lanes of a large and of a huge island: whole blocks on a GPU."""

    def own_gpu(self) -> AbstractContextManager[Any] | None:
        """What makes the backend's GPU the current one of the thread; None for a backend without one."""
        ...

    def form_of(self, model: ModelTable, dtype: str) -> ModelTable:
        """The model in its fastest form on the processor: solved by islands, or as one problem for each world."""
        ...

    def lanes(self, nv: int) -> int:
        """The number of lanes for a world or island with nv dofs."""
        ...

    def registers(self, nv: int) -> bool:
        """Whether matrices with nv rows are factored in registers. Kernels then need no scratch for them."""
        ...

    def matrix_rows(self, nv: int, dtype: str) -> int:
        """nv where kernels are compiled for matrices of this size, with two rows in a lane's registers; 0 elsewhere."""
        ...

    def block_rows(self, nv: int, dtype: str) -> int:
        """nv where a block of lanes holds matrices with nv rows, with one row in a lane's registers; 0 elsewhere."""
        ...

    def dual_rows(self, nv: int, dtype: str) -> int:
        """The most rows of an island without elliptic cones that PGS has in the registers of its lanes."""
        ...

    def along_branches(self, nv: int) -> bool:
        """Whether kernels of Newton's method have entries of matrices with nv rows along the branches of trees only."""
        ...

    def solves_by_warps(self, nv: int, dtype: str) -> bool:
        """Whether several warps solve a world of nv dofs that has many constraint rows."""
        ...

    def zeros(self, shape: tuple[int, ...], dtype: str) -> Any:
        """A zeroed array in the backend's memory."""
        ...

    def expect(self, nbytes: int) -> None:
        """Prepare for many arrays of so many bytes together."""
        ...

    def filling(self) -> AbstractContextManager[None]:
        """Let `zeros` and `upload` of this thread wait for their memory together, at the end, and not each for itself.

        Nothing else may use that memory before.
        """
        ...

    @property
    def arrays(self) -> Any:
        """The module whose functions work on the backend's arrays: NumPy, or CuPy with the same functions."""
        ...

    def free_memory(self) -> int | None:
        """Bytes that can still be allocated; None if the system does not say."""
        ...

    def upload(self, array: np.ndarray) -> Any:
        """A copy of a host array in the backend's memory."""
        ...

    def stage(self, array: np.ndarray) -> Any:
        """A host array for one use on the caller's stream. It may be freed as soon as that use is enqueued."""
        ...

    def copier(self, array: Any, rows: Any) -> Callable[[int, int], None]:
        """A function `copy(k, number)` that copies `rows[k : k + number]` to the beginning of `array`.

        The copy is ordered with the other work of the caller's stream.
        """
        ...

    def copier_of_many(self, pairs: Sequence[tuple[Any, Any]]) -> Callable[[int], None]:
        """A function `copy(k)` that copies `rows[k]` to the beginning of `array`, for all pairs (array, rows).

        The copies are ordered with the other work of the caller's stream.
        """
        ...

    def drain(self) -> None:
        """Wait for all work on the device, on every stream, since the streams of the work may not exist any more."""
        ...

    def host_visible(self, count: int) -> np.ndarray:
        """A zeroed int32 array, (count,), that kernels write and the host reads at the same address."""
        ...

    def pointer(self, array: Any) -> int:
        """The address of an array, as kernels use it."""
        ...

    def to_host(self, array: Any) -> np.ndarray:
        """A copy of an array on the host; the host backend returns the array itself."""
        ...

    def load(self, builds: Sequence[Build], dtype: str, own_tables: bool) -> list[Any]:
        """Compile kernels, or find them in the cache. The more there are at once, the more are compiled in parallel.

        Args:
            builds: the kernels, and the lanes of their units.
            dtype: type of real numbers, "float32" or "float64".
            own_tables: whether worlds have model tables of their own.

        Returns:
            The compiled functions, in the order of the builds.

        Raises:
            BackendError: the compiler is missing or failed.
        """
        ...

    def launch(self, function: Any, extent: Extent, args: Sequence[Any], buffers: BufferSet) -> Launch:
        """Bind a compiled kernel to its arguments and its launch shape.

        Args:
            function: the compiled kernel.
            extent: what the kernel works on.
            args: the arguments, in order. Buffers are passed as their present addresses.
            buffers: the buffers among the arguments.
        """
        ...

    def resize(self, launch: Any, extent: Extent, packed: bool) -> Launch:
        """The same launch for another number of units.

        Args:
            launch: as `launch` returned it.
            extent: what the kernel works on, which is no scan.
            packed: whether as many units as possible share a block, since kernels of other shards run beside it.
        """
        ...

    def step_shape(self, all_worlds: int, groups: int, lanes: int, scratch_bytes: int) -> StepShape | None:
        """How worlds share blocks in kernels of whole steps.

        Args:
            all_worlds: number of worlds, in all groups that have such kernels.
            groups: number of these groups.
            lanes: lanes of a world.
            scratch_bytes: shared memory of a world [bytes].

        Returns:
            The shape of a block; None if there are too many worlds or the backend has no such kernels.
        """
        ...

    def launch_steps(
        self,
        function: Any,
        units: int,
        shape: StepShape,
        scratch_bytes: int,
        args: Sequence[Any],
        buffers: BufferSet,
    ) -> Launch:
        """Bind a kernel of whole steps to its arguments and its launch shape.

        Args:
            function: the compiled kernel.
            units: number of worlds.
            shape: how worlds share blocks.
            scratch_bytes: shared memory of a world [bytes].
            args, buffers: as for `launch`.

        Raises:
            BackendError: the backend has no such kernels.
        """
        ...

    def executor_options(self, name: str, num_shards: int) -> dict[str, Any]:
        """Options for `make_executor` that suit this backend.

        Raises:
            ValueError: the executor `name` cannot run on this backend.
        """
        ...

    def executor_for(self, waits: bool) -> str:
        """The executor that is most likely the fastest; `waits` says whether some model must wait for counts."""
        ...

    def candidates(self, waits: bool, num_shards: int) -> Candidates:
        """The executors that may be the fastest, for this number of shards."""
        ...

    def emission(self, executor: str, options: Mapping[str, Any], waits: bool) -> str:
        """The way of emission with which an executor is fastest.

        Args:
            executor: name of the executor.
            options: options of the executor.
            waits: whether some model must wait for counts.

        Returns:
            "counted", "ahead" or "whole".
        """
        ...

    def shards_for(self, num_worlds: int, executor: str, emission: str, share: float = 1.0) -> int:
        """The number of shards with which a group of this size is fastest.

        Args:
            num_worlds: worlds of the group.
            executor, emission: how the batch is stepped.
            share: the group's share of the work of the batch, roughly.
        """
        ...

    def synchronize(self) -> None:
        """Wait until all work that was issued so far is done."""
        ...
