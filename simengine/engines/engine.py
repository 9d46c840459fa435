"""`Engine`: what stands between `Simulation` and what steps its worlds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from simengine.arrays import Array
from simengine.emission.calls import EmittedCall
from simengine.model.model_table import ModelTable
from simengine.plan.memory import Footprint
from simengine.plan.step_plan import StepPlan
from simengine_scheduler import Executor, Segments, Trace
from simengine_scheduler.core import Emitter


class Engine(Protocol):
    """Steps groups of worlds, which it knows by numbers that they keep when others come and go.

    What `Simulation` and `Group` hand over is checked: fields exist, shapes fit, host values are finite.

    Attributes:
        valid: for each group, the derived fields that hold the latest evaluation.
        paused: groups that `step` leaves out.
    """

    valid: dict[int, frozenset[str]]
    paused: set[int]

    # ------------------------------------------------------------------------------------------------------ groups

    def add(self, model: ModelTable, num_worlds: int) -> int:
        """Take in a group; returns its number. Raises BackendError where it does not fit; nothing is changed then."""

    def remove(self, group: int) -> None:
        """Forget a group and give back its memory."""

    def num_shards(self, group: int) -> int:
        """Ranges into which a group's worlds are split."""

    # ---------------------------------------------------------------------------------------------------- stepping

    def step(
        self,
        n: int,
        keep: frozenset[str],
        controls: Mapping[int, Array],
        executor: Executor | None = None,
        as_issued: bool = True,
    ) -> None:
        """Advance every world by `n` steps, but for those of paused groups.

        Args:
            n: number of steps.
            keep: derived fields that must be valid afterwards.
            controls: of groups that have others in each step, (n, num_worlds, nu).
            executor: what runs them instead of the engine's own.
            as_issued: whether whole steps are run as such, not kernel by kernel.
        """

    def forward(self) -> None:
        """Fill every derived field from the state."""

    def bad_worlds(self, group: int) -> int:
        """Number of worlds whose state is no longer finite."""

    def counts(self, group: int) -> dict[str, int]:
        """Contacts, rows and other totals of the latest count."""

    # ------------------------------------------------------------------------------------------------------ arrays

    def get(self, group: int, name: str) -> Array:
        """The array of a world field, (num_worlds, ...)."""

    def put(self, group: int, name: str, worlds: np.ndarray | None, values: Array | np.ndarray | float) -> None:
        """Write a world field, for all worlds or those with the given numbers."""

    def params(self, group: int, name: str) -> Array:
        """A parameter of every world of a group, (num_worlds, ...)."""

    def given(self, group: int, name: str) -> Array | None:
        """A parameter of every world of a group, (num_worlds, ...); None if it was not set."""

    def set_params(self, group: int, worlds: np.ndarray | None, fields: dict[str, Array]) -> None:
        """Set parameters of worlds of a group, and work out what follows from them."""

    def arena(self, group: int, world: int, names: Sequence[str], counter: str, address: str) -> dict[str, np.ndarray]:
        """The contacts or rows of one world, on the host."""

    # ------------------------------------------------------------------------------------------ memory and its end

    def nbytes(self) -> int:
        """Bytes held, of models, parameters, fields and arenas."""

    def footprint(self, group: int, num_worlds: int, keep: frozenset[str]) -> Footprint:
        """Bytes that so many worlds of a group's model take. Raises BackendError where that is unknown."""

    def synchronize(self) -> None:
        """Wait until everything issued so far is done."""

    def close(self) -> None:
        """Give back threads and streams, once the work under way is done."""

    # ---------------------------------------------------------------------------------------------------- schedule

    @property
    def executor_name(self) -> str:
        """The executor that runs the steps, or whose turn it is; "none" where there are no kernel lists."""

    @property
    def executor_reason(self) -> str:
        """Why it does."""

    @property
    def emission(self) -> str:
        """How steps become kernels: "counted", "ahead", "whole", or "none" where there are no kernel lists."""

    def plan(self, group: int) -> StepPlan:
        """What a step of a group needs. Raises BackendError where there are no kernel lists."""

    @property
    def segments(self) -> Segments:
        """The table of the kernel list's segments. Raises BackendError where there are no kernel lists."""

    @property
    def trace(self) -> Trace:
        """What the latest run recorded. Raises BackendError where there are no kernel lists."""

    def needed_options(self) -> dict[str, Any]:
        """Options without which executors cannot run this engine's lists. Raises BackendError where there are none."""

    def lists(self) -> list[Emitter]:
        """Emitters of one step of every shard. Raises BackendError where there are none."""

    def last_kernel_list(self) -> list[EmittedCall]:
        """Calls of the latest step or forward, shard after shard."""

    def traced_step(self, keep: frozenset[str], as_issued: bool) -> Trace:
        """Advance by one step and return its times. Raises BackendError where there are no kernel lists."""
