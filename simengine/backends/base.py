"""What a kernel-list backend offers: memory, compiled kernels and launches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from simengine.kernels.kernel import Kernel
from simengine.model.model_table import ModelTable
from simengine_scheduler.core import Launch
from simengine_scheduler.launch import BufferSet

LANE_CLASSES: tuple[int, ...] = (8, 16, 32)


def lanes_for(nv: int) -> int:
    """Lanes that work on a world of a model with nv dofs: the smallest class that holds a row of M a lane."""
    return next((lanes for lanes in LANE_CLASSES if nv <= lanes), LANE_CLASSES[-1])


class Candidates(NamedTuple):
    """Executors that may serve best.

    Attributes:
        names: of the executors, the likeliest first; among several it is measured, on the first steps.
        reason: what tells that it is the one, where there is one.
    """

    names: tuple[str, ...]
    reason: str


class StepShape(NamedTuple):
    """How worlds share a block of a kernel of whole steps: so many warps a team, and worlds a warp."""

    warps: int
    worlds_in_warp: int

    @property
    def worlds(self) -> int:
        """Worlds of a block."""
        return self.warps * self.worlds_in_warp


class Backend(Protocol):
    """A processor that runs kernel lists."""

    name: str
    wide_lanes: int
    """Lanes of the group of a large world: a whole block on the GPU."""
    island_lanes: tuple[int, int]
    """Lanes of the group of a large and of a huge island, likewise."""

    def form_of(self, model: ModelTable) -> ModelTable:
        """The form of a model that suits the processor."""
        ...

    def lanes(self, nv: int) -> int:
        """Lanes of a world's group for nv dofs."""
        ...

    def registers(self, nv: int) -> bool:
        """Whether matrices of nv rows are factored in registers, so that kernels need no scratch for them."""
        ...

    def zeros(self, shape: tuple[int, ...], dtype: str) -> Any:
        """A zeroed array in the backend's memory."""
        ...

    @property
    def arrays(self) -> Any:
        """The module whose functions work on the backend's arrays: NumPy, or what has the same ones."""
        ...

    def free_memory(self) -> int | None:
        """Bytes that can still be had, where the machine tells."""
        ...

    def upload(self, array: np.ndarray) -> Any:
        """A copy of a host array in the backend's memory."""
        ...

    def stage(self, array: np.ndarray) -> Any:
        """A copy of a host array for one use by the caller's stream: it may be dropped as soon as that is enqueued."""
        ...

    def copier(self, array: Any, rows: Any) -> Callable[[int, int], None]:
        """A function of k and a number: it copies so many rows, from row k of `rows` on, to the beginning of `array`.

        It does so in the order of the caller's stream.
        """
        ...

    def drain(self) -> None:
        """Wait for everything under way on the device, whatever stream it is on: the caller's may be gone already."""
        ...

    def host_visible(self, count: int) -> np.ndarray:
        """An int32 array that the host reads and kernels write; its address is valid for both."""
        ...

    def pointer(self, array: Any) -> int:
        """Address of an array for kernels."""
        ...

    def to_host(self, array: Any) -> np.ndarray:
        """Host copy (or, on the host, the array itself)."""
        ...

    def load(self, kernels: Iterable[Kernel], dtype: str, lanes: int) -> dict[str, Any]:
        """Compiled functions of kernels by name."""
        ...

    def launch(
        self,
        function: Any,
        units: int,
        lanes: int,
        scratch_bytes: int,
        args: Sequence[Any],
        buffers: BufferSet,
        columns: bool,
    ) -> Launch:
        """A launch over `units` worlds (or, with `columns`, columns)."""
        ...

    def resize(self, launch: Any, units: int, lanes: int, scratch_bytes: int, packed: bool) -> Launch:
        """The same launch over another number of worlds, `packed` beside launches of other kernels."""
        ...

    def step_shape(self, all_worlds: int, groups: int, lanes: int, scratch_bytes: int) -> StepShape | None:
        """How worlds share blocks in kernels of whole steps, where so many worlds of so many groups have such kernels.

        None where the worlds are too many for such kernels, or the backend has none.
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
        """Bind a kernel of whole steps of so many worlds to its arguments."""
        ...

    def executor_options(self, name: str, num_shards: int) -> dict[str, Any]:
        """Options of `make_executor` that fit this backend; raises ValueError if it cannot run `name`."""
        ...

    def executor_for(self, by_islands: bool) -> str:
        """The executor that most likely serves best, where some model is solved by islands or none."""
        ...

    def candidates(self, by_islands: bool, num_shards: int) -> Candidates:
        """The executors that may serve best, and what is known of them."""
        ...

    def emission(self, executor: str, options: Mapping[str, Any], by_islands: bool) -> str:
        """Whether an executor does best with steps "counted", "ahead" of their counts, or "whole".

        `options` are the executor's, `by_islands` says that some model is solved by islands.
        """
        ...

    def shards_for(self, num_worlds: int, executor: str, emission: str) -> int:
        """How many shards serve a group of this size best."""
        ...

    def synchronize(self) -> None:
        """Wait until everything issued so far is done."""
        ...
