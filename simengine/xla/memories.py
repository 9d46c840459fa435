"""`memory_of`: the module that keeps the memory of a backend's custom calls."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Protocol, cast

from simengine.model.model_table import ModelTable


class Memories(Protocol):
    """Functions of `host_memory` and `cuda_memory`."""

    def load(self, table: ModelTable) -> Any:
        """Compile and register the handler. Raises BackendError if the model's steps cannot run inside a program."""
        ...

    def prepare(self, call: Any) -> None:
        """Make the memory of a call in advance, on the devices of the present mesh, so that its first run need not."""
        ...


def memory_of(backend: str) -> Memories:
    """The module for "host" or "cuda"."""
    if backend == "cuda":
        return cast("Memories", import_module("simengine.xla.cuda_memory"))
    return cast("Memories", import_module("simengine.xla.host_memory"))
