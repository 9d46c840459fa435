"""`Engine`: the interface between `Simulation` and the code that steps its worlds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from simengine.arrays import Array
from simengine.emission.calls import EmittedCall
from simengine.model.model_table import ModelTable
from simengine.model.params import SavedParams
from simengine.plan.memory import Footprint
from simengine.plan.step_plan import StepPlan
from simengine_scheduler import Executor, Segments, Trace
from simengine_scheduler.core import Emitter


class Engine(Protocol):
    """Steps groups of worlds.

    The number of a group stays the same when other groups are added or removed. `Simulation` and `Group` have checked
    all arguments: fields exist, shapes fit, and values on the host are finite.

    Attributes:
        valid: for each group, the derived fields whose values are those of the latest evaluation.
        paused: groups that `step` leaves out.
    """

    valid: dict[int, frozenset[str]]
    paused: set[int]

    # ------------------------------------------------------------------------------------------------------ groups

    def add(self, model: ModelTable, num_worlds: int) -> int:
        """Add a group and return its number. Raises BackendError, and changes nothing, if memory does not suffice."""

    def remove(self, group: int) -> None:
        """Remove a group and release its memory."""

    def num_shards(self, group: int) -> int:
        """Number of shards into which a group's worlds are split."""

    # ---------------------------------------------------------------------------------------------------- stepping

    def step(
        self,
        n: int,
        keep: frozenset[str],
        controls: Mapping[int, Array],
        executor: Executor | None = None,
        whole_steps: bool = True,
    ) -> None:
        """Advance the worlds of all groups that are not paused by `n` steps.

        Args:
            n: number of steps.
            keep: derived fields that must be valid after the last step.
            controls: controls of each step, (n, num_worlds, nu), by group. Other groups use their field `ctrl`.
            executor: runs the steps; None for the engine's own executor.
            whole_steps: whether whole steps are issued as one call. If not, they are issued kernel by kernel.
        """

    def forward(self) -> None:
        """Fill every derived field from the state."""

    def bad_worlds(self, group: int) -> int:
        """Number of frozen worlds, whose state is not finite, in the latest evaluation."""

    def has_bad_worlds(self) -> bool:
        """Whether a group has frozen worlds in its latest evaluation."""

    def counts(self, group: int) -> dict[str, int]:
        """Totals of contacts, rows and others at the latest count, by name."""

    # ------------------------------------------------------------------------------------------------------ arrays

    def get(self, group: int, name: str) -> Array:
        """The array of a world field, (num_worlds, ...)."""

    def put(self, group: int, name: str, worlds: np.ndarray | None, values: Array | np.ndarray | float) -> None:
        """Write a world field of all worlds, or of those with the given indices."""

    def params(self, group: int, name: str) -> Array:
        """A copy of a parameter of every world of a group, (num_worlds, ...)."""

    def param_shape(self, group: int, name: str) -> tuple[int, ...]:
        """The shape of a parameter in one world."""

    def given(self, group: int, name: str) -> Array | None:
        """A parameter of every world of a group, (num_worlds, ...); None if it was not set."""

    def set_params(self, group: int, worlds: np.ndarray | None, fields: dict[str, Array]) -> None:
        """Set parameters of all worlds of a group, or of some, and compute the table fields that follow from them."""

    def saved_params(self, group: int) -> SavedParams:
        """The parameters that were set for worlds of a group, and what follows from them, on the host."""

    def restore_params(self, group: int, saved: SavedParams) -> None:
        """Give all worlds of a group the parameters that were saved, and the model's values of all others."""

    def arena(self, group: int, world: int, names: Sequence[str], counter: str, address: str) -> dict[str, np.ndarray]:
        """The contacts or rows of one world, on the host.

        Args:
            group: number of the group.
            world: index of the world.
            names: arena fields to return.
            counter: the field with each world's number of entries, "ncon" or "nefc".
            address: the field with the index of each world's first entry.
        """

    # ------------------------------------------------------------------------------------------ memory and its end

    def nbytes(self) -> int:
        """Memory of models, parameters, fields and arenas [bytes]."""

    def footprint(self, group: int, num_worlds: int, keep: frozenset[str]) -> Footprint:
        """Memory that `num_worlds` worlds of a group's model take. Raises BackendError if JAX manages the memory."""

    def synchronize(self) -> None:
        """Wait until all work issued so far has completed."""

    def close(self) -> None:
        """Wait for issued work, then release threads and streams."""

    # ---------------------------------------------------------------------------------------------------- schedule

    @property
    def executor_name(self) -> str:
        """The executor that runs the steps, or that is being measured; "none" without kernel lists."""

    @property
    def executor_reason(self) -> str:
        """Why this executor runs the steps."""

    @property
    def emission(self) -> str:
        """How steps become kernel calls, as for `Simulation`; "none" without kernel lists."""

    def plan(self, group: int) -> StepPlan:
        """The plan of a group's step. Raises BackendError without kernel lists."""

    @property
    def segments(self) -> Segments:
        """The table of the kernel list's segments. Raises BackendError without kernel lists."""

    @property
    def trace(self) -> Trace:
        """The trace of the latest run. Raises BackendError without kernel lists."""

    def needed_options(self) -> dict[str, Any]:
        """Options that executors need to run this engine's lists. Raises BackendError without kernel lists."""

    def lists(self) -> list[Emitter]:
        """Emitters of one step of every shard. Raises BackendError without kernel lists."""

    def last_kernel_list(self) -> list[EmittedCall]:
        """Calls of the latest step or forward evaluation, shard after shard."""

    def traced_step(self, keep: frozenset[str], whole_steps: bool) -> Trace:
        """Advance by one step and return its trace with times. Raises BackendError without kernel lists."""
