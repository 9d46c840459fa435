"""The owner: the process that has the processor and runs what its clients submit.

    client --socket-- receiving thread: requests, submissions --> exchange --> running thread: executor.run
    client --socket-- receiving thread                                              |
           <---------- done, failed ------------------------------------------------+

The death of a client does not disturb the others; see `exchange.py`. A fault of the device ends the owner, which tells
every client so. Whoever can open the socket can run code in the owner. Only its user has access to the socket, and
`authkey` adds a secret.
"""

from __future__ import annotations

import contextlib
import math
import os
import shutil
import socket
import stat
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, Listener, answer_challenge, deliver_challenge
from types import TracebackType
from typing import Any, Self

from ..core.segments import Segments
from ..cuda.driver import CudaDriver, Driver
from ..executors.base import Executor
from ..registry import make_executor
from .channel import Channel, MalformedMessage, take
from .errors import OwnerLost
from .exchange import Exchange
from .host import HostKernels
from .session import Session, failure
from .shared import Kernels, Limits, Shared

_PAUSE_SECONDS = 0.01
_PATIENCE_SECONDS = 0.2  # a client that respects its limit always has room for reports
_PORTION_SECONDS = 0.2  # the main thread waits in portions, so that it can handle signals
_HOST = ("serial", "shuffled", "threads")
_DEVICE = ("serial", "streams")


class Owner:
    """Listens at `address` until it is closed. `serve` makes it."""

    def __init__(
        self,
        address: str | None,
        executor: Executor,
        exchange: Exchange,
        shared: Shared,
        authkey: bytes | None,
        limits: Limits,
    ) -> None:
        self._folder = tempfile.mkdtemp(prefix="scheduler-") if address is None else None
        self.address = address if address is not None else os.path.join(str(self._folder), "owner")
        self.failure: BaseException | None = None
        self._executor, self._exchange, self._shared = executor, exchange, shared
        self._authkey, self._limits = authkey, limits
        self._lock = threading.Lock()
        self._channels: dict[Channel, Session | None] = {}
        self._closing = ""
        self._listener = _listen(self.address)
        self._runner = threading.Thread(target=self._run, name="scheduler-owner", daemon=True)
        self._receivers: list[threading.Thread] = []
        self._acceptor = threading.Thread(target=self._accept, name="scheduler-accept", daemon=True)
        self._runner.start()
        self._acceptor.start()

    @property
    def clients(self) -> list[str]:
        """The names of the clients that are connected."""
        with self._lock:
            return [session.name for session in self._channels.values() if session is not None]

    def join(self, timeout: float | None = None) -> None:
        """Wait until the owner has ended by itself, for `timeout` seconds at most. Raises the fault that ended it.

        On the main thread a signal ends the wait too, within a moment, even if another thread received it.
        """
        end = math.inf if timeout is None else time.monotonic() + timeout
        while self._runner.is_alive() and (left := end - time.monotonic()) > 0:
            self._runner.join(min(left, _PORTION_SECONDS))
        if self.failure is not None:
            raise self.failure

    def close(self) -> None:
        """Tell the clients, drop what they have queued, wait for running calls and free everything."""
        self._end(f"the owner at {self.address} has been closed")
        self._runner.join()
        for thread in (self._acceptor, *self._receivers):
            thread.join()
        if self.failure is None:
            self._executor.close()
            self._exchange.destroy()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def _run(self) -> None:
        """Run what clients submit, on the running thread."""
        try:
            with self._shared.kernels.thread():
                while self._exchange.wait():
                    self._executor.run([self._exchange.emit()])
        except BaseException as error:
            self.failure = error
            self._end(f"the owner at {self.address} has ended: {error}", abandon=True)

    def _end(self, reason: str, abandon: bool = False) -> None:
        with self._lock:
            first, self._closing = not self._closing, self._closing or reason
            channels = list(self._channels)
        if not first:
            return
        self._exchange.close(abandon)
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as waker:
            waker.connect(self.address)  # wakes the accepting thread
        for channel in channels:
            self._dismiss(channel, self._closing)

    def _dismiss(self, channel: Channel, reason: str) -> None:
        with contextlib.suppress(OSError):
            channel.send({"is": "closing", "error": reason})
        channel.hang_up()

    def _accept(self) -> None:
        """Accept clients, on the accepting thread."""
        with self._listener:
            while True:
                try:
                    connection = self._listener.accept()
                except OSError:  # the client is gone already, or there are too many open files
                    time.sleep(_PAUSE_SECONDS)
                    continue
                if self._closing:
                    connection.close()
                    return
                self._receivers = [thread for thread in self._receivers if thread.is_alive()]
                self._receivers.append(threading.Thread(target=self._receive, args=(connection,), daemon=True))
                self._receivers[-1].start()

    def _receive(self, connection: Connection) -> None:
        """Serve one client from its greeting to its end, on its receiving thread."""
        channel = Channel(connection, _PATIENCE_SECONDS)
        with self._lock:
            reason, full = self._closing, len(self._channels) >= self._limits.connections
            if full and not reason:
                reason = f"the owner at {self.address} has its {self._limits.connections} connections; try again later"
            if not reason:  # a connection that is refused takes no place, not even until its thread ends
                self._channels[channel] = None
        if reason:
            self._dismiss(channel, reason)
            channel.close()
            return
        session = None
        # whoever connects and says nothing does not keep a connection from others
        patience = threading.Timer(self._limits.greeting, channel.hang_up)
        patience.daemon = True
        patience.start()
        try:
            if self._authkey is not None:
                deliver_challenge(connection, self._authkey)
                answer_challenge(connection, self._authkey)
            session = self._greet(channel)
            patience.cancel()
            with self._shared.kernels.thread():
                self._converse(channel, session)
        except MalformedMessage as error:
            with contextlib.suppress(OSError):
                channel.send({"is": "closing", "error": f"the owner at {self.address} has been sent {error}"})
        except (EOFError, OSError, AuthenticationError):
            pass  # the client is gone
        finally:
            patience.cancel()
            with self._lock:
                del self._channels[channel]
            if session is not None:
                self._exchange.lose(session)
            channel.hang_up()
            channel.close()

    def _greet(self, channel: Channel) -> Session:
        name = take(channel.receive(), "name", str)
        session = Session(name, channel, self._shared, self._limits.lists)
        with self._lock:
            self._channels[channel] = session
        channel.send({"is": "welcome", "limit": self._limits.lists, "memory": self._shared.kernels.memory})
        return session

    def _converse(self, channel: Channel, session: Session) -> None:
        while True:
            message = channel.receive()
            submits = message["is"] == "submit"
            try:
                if submits:
                    self._exchange.submit(session.submission(message))
                else:
                    session.answer(message)
            except (ValueError, TypeError, MemoryError, RuntimeError, OSError, OverflowError) as error:
                if self._shared.is_fault(error):
                    raise OSError(str(error)) from error
                if submits and type(message.get("ticket")) is int:
                    channel.send(failure(message["ticket"], "", str(error), first=False))
                else:
                    channel.send({"is": "refused", "error": f"{error}"})


def _listen(address: str) -> Listener:
    """Listen at a path. Raises ValueError if another owner listens there, OwnerLost if the path cannot be used."""
    if os.path.exists(address) and stat.S_ISSOCK(os.stat(address).st_mode):
        with socket.socket(socket.AF_UNIX) as probe:
            try:
                probe.connect(address)
            except ConnectionRefusedError:
                os.unlink(address)  # an owner that was killed left it
            else:
                raise ValueError(f"another owner listens at {address}; choose another address")
    mask = os.umask(0o177)
    try:
        return Listener(address, "AF_UNIX", backlog=64)
    except OSError as error:
        raise OwnerLost(f"no owner can listen at {address} ({error}); choose another address") from error
    finally:
        os.umask(mask)


def serve(
    address: str | None = None,
    executor: str = "threads",
    *,
    authkey: bytes | None = None,
    limit: int = 64,
    connections: int = 256,
    greeting: float = 10.0,
    memory_limit: int | None = None,
    functions: Mapping[str, Callable[..., None]] | None = None,
    kernels: Kernels | None = None,
    **options: Any,
) -> Owner:
    """Own the processor in this process, and run what clients submit. An owner is a context manager.

    Args:
        address: path of the Unix socket; None makes one in a new folder (`Owner.address`).
        executor: "threads", "serial" or "shuffled" on the host; "streams", or "serial" with device="cuda", on CUDA.
        authkey: a secret that clients must know. With None only the permissions of the socket protect the owner, which
            admit its user alone.
        limit: lists that a client may have under way. Further submissions wait in the client.
        connections: clients that may be connected at one time. Others are told so, and hung up on.
        greeting: seconds that a connection has until it has said who it is.
        memory_limit: bytes that the buffers of all clients may have together; None for the memory of the machine, or on
            CUDA for what the GPU has.
        functions: Python functions of arrays and numbers that clients may call by name, on the host.
        kernels: replaces the processor, for example by a fake one in tests.
        options: options of `make_executor`, except `segments` and `record`.

    Raises:
        ValueError: the executor cannot take in calls while it runs.
        RuntimeError: the executor cannot run on this machine.
    """
    device = executor == "streams" or options.get("device") == "cuda"
    if executor not in (_DEVICE if device else _HOST):
        known = ", ".join(dict.fromkeys(_HOST + _DEVICE))
        raise ValueError(f"executor {executor!r} cannot be shared by clients; choose one of {known}")
    for name in ("segments", "record"):
        if name in options:
            raise TypeError(f"serve() sets option {name!r} itself; leave it out")
    if limit < 1:
        raise ValueError(f"limit={limit} lets no client submit; give at least 1")
    if connections < 1 or not greeting > 0:
        raise ValueError(f"connections={connections} and greeting={greeting} let no client in; give numbers above zero")
    if device and options.get("driver") is None:
        options["driver"] = CudaDriver()
    driver: Driver | None = options.get("driver") if device else None
    if kernels is None:
        kernels = _cuda_kernels() if device else HostKernels(functions or {})
    table = Segments()
    made = make_executor(executor, segments=table, **options)
    shared = Shared(kernels, driver, memory_limit if memory_limit is not None or device else _machine_memory())
    return Owner(address, made, Exchange(table, driver), shared, authkey, Limits(limit, connections, greeting))


def _machine_memory() -> int:
    """Bytes of memory of this machine. Systems promise more than they have."""
    return int(os.sysconf("SC_PHYS_PAGES")) * int(os.sysconf("SC_PAGE_SIZE"))


def _cuda_kernels() -> Kernels:
    from .cuda import CudaKernels

    return CudaKernels()
