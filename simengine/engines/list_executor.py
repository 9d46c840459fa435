"""`ListExecutor`: which executor runs the lists of a `ListEngine`, and how their calls are issued."""

from __future__ import annotations

from collections.abc import Iterable, Sized
from typing import Any

from simengine.backends.base import Backend
from simengine.model.model_table import ModelTable
from simengine.plan.issue import Issuing, decide_issuing
from simengine_scheduler import Executor, Segments, make_executor
from simengine_scheduler.executors import AutoExecutor


class ListExecutor:
    """Makes the executor for the groups that there are.

    Args:
        backend: runs the calls.
        segments: the table of their segments.
        executor: name of an executor, or "auto" to let the backend choose.
        emission: how calls are issued, or "auto".
        options: further options of the executor.
    """

    def __init__(
        self, backend: Backend, segments: Segments, executor: str, emission: str, options: dict[str, Any]
    ) -> None:
        self._backend = backend
        self._segments = segments
        self._asked = executor, emission
        self._chosen = {"segments": segments, **options}
        self._options: dict[str, Any] = {}
        self._made: tuple[str, dict[str, Any]] | None = None  # name and options of the executor
        self._reason = ""

    def issuing(self, models: Iterable[ModelTable]) -> Issuing:
        """Decide the executor, and how calls of these models are issued."""
        return decide_issuing(models, self._backend, *self._asked, self._chosen)

    def make(self, issuing: Issuing, emitters: Iterable[Sized], present: Executor | None) -> Executor:
        """Make the executor and close the present one, unless it is the same.

        Args:
            issuing: the decision for all groups.
            emitters: of each group.
            present: the present executor.
        """
        shards = sum(map(len, emitters))
        self._reason = "it was asked for"
        candidates: tuple[str, ...] = (issuing.executor,)
        name = issuing.executor
        if self._asked[0] == "auto":
            candidates, self._reason = self._backend.candidates(issuing.waits, shards)
            name = candidates[0] if len(candidates) == 1 else "auto"
        self._options = {**self._backend.executor_options(name, shards), **self._chosen}
        wanted = name, {"candidates": "+".join(candidates), **self._options}
        # candidates of `auto` take turns anew, since groups may change the choice
        if present is not None and wanted == self._made and name != "auto":
            return present
        if present is not None:
            present.close()
        self._made = wanted
        return make_executor(name, **wanted[1])

    def recording(self, name: str) -> Executor:
        """Make an executor of this name that records times."""
        return make_executor(name, **{**self._options, "record": "times"})

    def needed_options(self, name: str, emitters: Iterable[Sized]) -> dict[str, Any]:
        """Options that an executor of this name needs to run the lists."""
        return {**self._backend.executor_options(name, sum(map(len, emitters))), "segments": self._segments}

    def reason(self, executor: Executor) -> str:
        """Why this executor runs the steps."""
        return executor.reason if isinstance(executor, AutoExecutor) else self._reason
