"""What the sessions of an owner share: its kernels, arrays by name, slots, and the memory that clients may take."""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol

from ..core.calls import Launch
from ..cuda.driver import Driver
from ..launch.arguments import BufferSet
from .channel import Message
from .memory import Block, SharedArray
from .wire import CallMessage


def lowest_free(used: Collection[int]) -> int:
    """Return the lowest number from 0 that is not in use."""
    return next(n for n in range(len(used) + 1) if n not in used)


class Limits(NamedTuple):
    """What clients may take: lists under way for each, connections together, and seconds for a greeting."""

    lists: int
    connections: int
    greeting: float


class Kernels(Protocol):
    """Memory and kernels of the owner's processor, a host (`host.py`) or a GPU (`cuda.py`)."""

    memory: str  # `host` or `cuda`: how clients map it

    def thread(self) -> AbstractContextManager[Any]:
        """Return the scope in which a thread of the owner uses the processor."""
        ...

    def allocate(self, nbytes: int) -> Block:
        """Return new memory, zeroed."""
        ...

    def load(self, message: Message) -> Any:
        """Return the kernel that a message asks for. Raises ValueError or OSError where there is none."""
        ...

    def launch(
        self, kernel: Any, call: CallMessage, args: Sequence[Any], buffers: BufferSet, arrays: Mapping[str, Any]
    ) -> Launch:
        """Bind a kernel to its arguments. Raises TypeError or ValueError for one that does not fit."""
        ...


class Shared:
    """What sessions have in common: kernels, arrays that clients share by name, slots, and the memory they may take."""

    def __init__(self, kernels: Kernels, driver: Driver | None, memory_limit: int | None = None) -> None:
        self.kernels = kernels
        self.driver = driver
        self.memory_limit = memory_limit
        self.taken = 0  # bytes of all buffers
        self.lock = threading.Lock()  # guards `slots`, `taken`, `arrays` and the holders of arrays
        self.arrays: dict[str, SharedArray] = {}
        self.slots: set[int] = set()  # in use

    def is_fault(self, error: BaseException) -> bool:
        """Whether an error has ended the CUDA context."""
        return self.driver is not None and self.driver.is_fault(error)

    def take_slot(self) -> int:
        """Return the lowest free slot, so that names of segments repeat and their table does not grow."""
        with self.lock:
            slot = lowest_free(self.slots)
            self.slots.add(slot)
            return slot

    def allocate(self, nbytes: int) -> Block:
        """Return new memory. Raises ValueError if clients would hold more than they may."""
        with self.lock:
            if self.memory_limit is not None and self.taken + nbytes > self.memory_limit:
                raise ValueError(
                    f"{nbytes} bytes beside the {self.taken} that are taken exceed the owner's limit of "
                    f"{self.memory_limit}; free buffers, or give the owner a larger memory_limit"
                )
            self.taken += nbytes
        try:
            return self.kernels.allocate(nbytes)
        except BaseException:
            self.give_back(nbytes)
            raise

    def give_back(self, nbytes: int) -> None:
        """Count memory as free again."""
        with self.lock:
            self.taken -= nbytes
