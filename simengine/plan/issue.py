"""`Issue`: how the calls of steps are issued. It is decided once for a batch; everything else follows it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any, NamedTuple

from simengine.backends.base import Backend
from simengine.model.model_table import ModelTable

EMISSIONS = ("auto", "counted", "ahead", "whole")
"""Ways of emission that a user may ask for."""


class Issue(Enum):
    """How the calls of steps are issued."""

    COUNTED = "counted"
    """Call by call, once the contacts and rows of the step have been counted."""
    AHEAD = "ahead"
    """As one fixed list of all that a step may need, before anything has been counted."""
    STEP_KERNEL = "step kernel"
    """As one kernel that makes whole steps, on the GPU; worlds that have no such kernel are stepped ahead."""
    PROGRAM = "program"
    """As one call of the host that carries out a step's calls, counts included, without Python."""

    @property
    def by_kernels(self) -> Issue:
        """What is nearest to it with the kernels of a list, one by one."""
        return {Issue.STEP_KERNEL: Issue.AHEAD, Issue.PROGRAM: Issue.COUNTED}.get(self, self)

    def under(self, executor: str) -> Issue:
        """The same for calls that an executor of this name runs: workers on the device run no kernels of steps."""
        return Issue.AHEAD if self is Issue.STEP_KERNEL and executor == "device" else self

    @property
    def is_ahead(self) -> bool:
        """Whether steps that are issued kernel by kernel go ahead of their counts."""
        return self.by_kernels is Issue.AHEAD


class Issuing(NamedTuple):
    """What is decided for all groups of a batch.

    Attributes:
        executor: name of the executor that most likely serves best, or that was asked for.
        emission: "counted", "ahead" or "whole".
        issue: what that means on the backend.
        by_islands: whether some model is solved island by island.
    """

    executor: str
    emission: str
    issue: Issue
    by_islands: bool


def decide_issuing(
    models: Iterable[ModelTable], backend: Backend, executor: str, emission: str, options: Mapping[str, Any]
) -> Issuing:
    """Decide the executor and how calls are issued, where that was left open.

    Args:
        models: of all groups.
        backend: where they run.
        executor: name of an executor, or "auto".
        emission: one of `EMISSIONS`.
        options: of the executor.
    """
    by_islands = any(model.has_islands for model in models)
    chosen = backend.executor_for(by_islands) if executor == "auto" else executor
    if emission == "auto":
        emission = backend.emission(chosen, options, by_islands)
    whole = Issue.STEP_KERNEL if backend.name == "cuda" else Issue.PROGRAM
    issue = whole if emission == "whole" else Issue(emission)
    return Issuing(chosen, emission, issue.under(chosen), by_islands)
