"""`Issue`: how the calls of steps are issued. It is decided once for a batch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any, NamedTuple

from simengine.backends.base import Backend
from simengine.model.model_table import ModelTable

EMISSIONS = ("auto", "counted", "ahead", "whole", "stages", "stages-ahead")
"""Ways of emission that a user may choose."""


class Issue(Enum):
    """How the calls of steps are issued."""

    COUNTED = "counted"
    """Call by call, once the contacts and rows of the step have been counted."""
    AHEAD = "ahead"
    """As one fixed list of all calls that a step may need, ahead of counts."""
    STEP_KERNEL = "step kernel"
    """As one kernel on a GPU that makes whole steps. Models without such a kernel are stepped ahead of counts."""
    PROGRAM = "program"
    """As one compiled call on a CPU, which makes the kernel calls of a step and reads their counts without Python."""

    @property
    def by_kernels(self) -> Issue:
        """The nearest way of issuing that launches the kernels of a list one by one."""
        return {Issue.STEP_KERNEL: Issue.AHEAD, Issue.PROGRAM: Issue.COUNTED}.get(self, self)

    def under(self, executor: str) -> Issue:
        """How an executor of this name issues it. The workers of `device` cannot run kernels of whole steps."""
        return Issue.AHEAD if self is Issue.STEP_KERNEL and executor == "device" else self

    @property
    def is_ahead(self) -> bool:
        """Whether steps that are issued kernel by kernel go ahead of counts."""
        return self.by_kernels is Issue.AHEAD


_BY_STAGES = {"stages": Issue.COUNTED, "stages-ahead": Issue.AHEAD}


class Issuing(NamedTuple):
    """The decision for all groups of a batch.

    Attributes:
        executor: name of the executor: the one asked for, or the one that is most likely the fastest.
        emission: "counted", "ahead", "whole", "stages" or "stages-ahead".
        issue: how calls are issued with this emission on the backend.
        waits: whether some model must wait for counts.
    """

    executor: str
    emission: str
    issue: Issue
    waits: bool

    @property
    def by_stages(self) -> bool:
        """Whether each stage has a kernel of its own."""
        return self.emission in _BY_STAGES


def waits_for_counts(model: ModelTable) -> bool:
    """Whether steps of a model must wait for counts: pairs that a broadphase finds are counted, and have no bound."""
    return model.finds_pairs


def decide_issuing(
    models: Iterable[ModelTable], backend: Backend, executor: str, emission: str, options: Mapping[str, Any]
) -> Issuing:
    """Decide the executor and how calls are issued.

    Args:
        models: models of all groups.
        backend: runs the calls.
        executor: name of an executor, or "auto" to let the backend choose.
        emission: one of `EMISSIONS`; "auto" lets the backend choose.
        options: options of the executor.
    """
    waits = any(map(waits_for_counts, models))
    chosen = backend.executor_for(waits) if executor == "auto" else executor
    if emission == "auto":
        emission = backend.emission(chosen, options, waits)
    whole = Issue.STEP_KERNEL if backend.name == "cuda" else Issue.PROGRAM
    issue = whole if emission == "whole" else _BY_STAGES.get(emission) or Issue(emission)
    return Issuing(chosen, emission, issue.under(chosen), waits)
