"""What executor `device` needs of a machine: memory, programs of workers, and sessions that run one after another."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy as np

from ..launch.tasks import DeviceBody
from .book import Memory
from .occupancy import Multiprocessors
from .sessions import Session, State
from .workers import Kind, Worker


class Machine(Protocol):
    """A GPU, or threads of the host.

    `multiprocessors` are the resources of its workers.
    """

    multiprocessors: Multiprocessors

    def workers_of(self, wanted: dict[Kind, frozenset[DeviceBody]]) -> dict[Kind, Worker]:
        """Return workers that run given bodies, and maybe others. Raises ValueError if some cannot share blocks."""
        ...

    def memory(self) -> Memory:
        """Return memory that is freed with the object that is returned."""
        ...

    def visible(self, count: int) -> np.ndarray:
        """Return int32 numbers, zeros, in memory that host and device share."""
        ...

    def prepare(self, session: Session, state: State) -> int:
        """Return a handle that starts a session. Its structures are filled."""
        ...

    def drop(self, handle: int) -> None:
        """Free what a handle holds, once no session runs."""
        ...

    def run(self) -> AbstractContextManager[Any]:
        """Return the scope of a run, which comes after what the caller's program has issued, and before what follows.

        The object that it enters has attributes `latest`, the call issued last, and `feeder`.
        """
        ...

    def start(self, handle: int) -> None:
        """Start a session after those before it."""
        ...

    def is_running(self) -> bool:
        """Whether the session started last has not ended."""
        ...

    def synchronize(self) -> None:
        """Wait for what the caller's program has issued."""
        ...

    def close(self) -> None:
        """Free everything. No session runs."""
        ...
