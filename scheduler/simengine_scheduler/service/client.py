"""The client: how a process has its lists run by an owner."""

from __future__ import annotations

import os
import time
import weakref
from collections.abc import Sequence
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client as open_connection
from types import TracebackType
from typing import Any, Self

import numpy as np

from .calls import ClientCall, ClientList, Kernel
from .channel import Channel, MalformedMessage, Message
from .errors import ListFailed, OwnerLost, QueueFull, RequestRefused

_RETRY_SECONDS = 0.02
_LAST_WORDS_SECONDS = 0.5


class Ticket:
    """A submitted list."""

    __slots__ = ("_client", "_outcome", "number")

    def __init__(self, client: Client, number: int) -> None:
        self.number = number
        self._client = client
        self._outcome: ListFailed | bool = False

    @property
    def done(self) -> bool:
        """Whether the list is known to have ended, with success or not. Does not wait."""
        if self._outcome is False:
            self._client._drain()
        return self._outcome is not False

    def wait(self, timeout: float | None = None) -> None:
        """Wait until the list has ended. What it wrote may then be read.

        Raises:
            ListFailed: a call failed.
            TimeoutError: the list has not ended after `timeout` seconds.
            OwnerLost: the owner has gone.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while self._outcome is False:
            if not self._client._receive(deadline):
                raise TimeoutError(f"list {self.number} has not ended after {timeout} s; wait again, or for longer")
        if isinstance(self._outcome, ListFailed):
            raise self._outcome


class Client:
    """A connection to an owner, for one thread, made by `connect`.

    Arrays may be used after the connection is closed. What the owner holds for the client may not.
    """

    def __init__(self, channel: Channel, address: str, name: str) -> None:
        self.address, self.name = address, name
        self._channel = channel
        self._lost: OwnerLost | None = None
        self._reply: Message | None = None
        self._tickets: dict[int, Ticket] = {}
        self._submitted = 0
        self._failures = 0
        self.limit = 0
        self._finalizer = weakref.finalize(self, _leave, channel)
        self._send({"is": "hello", "name": name})
        welcome = self._await_reply()
        self.limit, self.memory = int(welcome["limit"]), str(welcome["memory"])

    # Memory

    def allocate(self, name: str, shape: int | Sequence[int], dtype: Any = np.float32, shared: bool = False) -> Any:
        """Return a new array of zeros in the memory of the owner: a NumPy array on the host, a CuPy array on a GPU.

        If `shared`, other clients may `attach` it by its name. Hazards then order the calls of different clients on it,
        like those of one client. Raises RequestRefused.
        """
        sizes = [int(shape)] if isinstance(shape, int | np.integer) else [int(n) for n in shape]
        request = {"is": "allocate", "name": name, "shape": sizes, "dtype": np.dtype(dtype).str, "shared": shared}
        return self._array(self._request(request))

    def attach(self, name: str) -> Any:
        """Return the array that another client has allocated with `shared`. Raises RequestRefused."""
        return self._array(self._request({"is": "attach", "name": name}))

    def free(self, name: str) -> None:
        """Free a buffer. Raises RequestRefused while a list uses it."""
        self._request({"is": "free", "name": name})

    def _array(self, reply: Message) -> Any:
        shape, dtype = tuple(reply["shape"]), np.dtype(reply["dtype"])
        if self.memory == "cuda":
            from .cuda import open_array

            return open_array(reply, shape, dtype)
        from .host import map_array

        return map_array(reply["descriptor"], shape, dtype)

    # Kernels

    def library(self, path: str | os.PathLike[str], symbol: str, status: bool = False) -> Kernel:
        """Load a host function of a shared library. `HostLaunch` describes what it receives.

        If `status`, the function returns an int32, and any value but 0 means that the call failed. Raises
        RequestRefused.
        """
        path = os.path.abspath(path)
        return self._kernel(symbol, {"library": path, "symbol": symbol, "status": status})

    def function(self, name: str) -> Kernel:
        """Return a Python function that the owner offers. Raises RequestRefused."""
        return self._kernel(name, {"function": name})

    def cuda(self, source: str, symbol: str, options: Sequence[str] = ()) -> Kernel:
        """Compile CUDA source at the owner. The function is declared `extern "C"`. Raises RequestRefused."""
        return self._kernel(symbol, {"source": source, "symbol": symbol, "options": list(options)})

    def cubin(self, path: str | os.PathLike[str], symbol: str) -> Kernel:
        """Load a kernel from a compiled file. Raises RequestRefused."""
        return self._kernel(symbol, {"cubin": os.path.abspath(path), "symbol": symbol})

    def _kernel(self, name: str, request: Message) -> Kernel:
        return Kernel(name, self._request({"is": "kernel", **request})["kernel"])

    # Lists

    def define(self, calls: Sequence[ClientCall], graph: bool = False) -> ClientList:
        """Make a list known to the owner.

        If `graph`, an owner of a GPU stores the list as a CUDA graph and issues it as one call. This is much cheaper if
        calls are small. Clients that share a buffer then wait for whole lists of each other, not for calls.

        Raises RequestRefused for unknown buffers or arguments that do not fit.
        """
        request = {"is": "define", "calls": [call.to_wire() for call in calls], "graph": graph}
        return ClientList(self._request(request)["list"], len(calls))

    def forget(self, calls: ClientList) -> None:
        """Let the owner forget a list. Raises RequestRefused while it is running."""
        self._request({"is": "forget", "list": calls.number})

    def submit(self, calls: ClientList, timeout: float | None = None) -> Ticket:
        """Submit a list. Returns at once, unless the queue is full.

        Lists that touch the same buffers run in the order of submission. If a list fails, the lists that were submitted
        before this client heard of it are left out, and fail too. On a GPU the client first waits for its current
        stream.

        Raises QueueFull if the queue is still full after `timeout` seconds. None waits for ever.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while len(self._tickets) >= self.limit:
            if not self._receive(deadline):
                raise QueueFull(
                    f"client {self.name!r} has {self.limit} lists under way, its limit, and none ended within "
                    f"{timeout} s; wait for a ticket first, or serve with a larger limit"
                )
        if self.memory == "cuda":
            from .cuda import finish_current_stream

            finish_current_stream()
        number = self._submitted
        self._send({"is": "submit", "list": calls.number, "ticket": number, "failures": self._failures})
        self._submitted += 1
        ticket = self._tickets[number] = Ticket(self, number)
        return ticket

    # Ends

    def close(self) -> None:
        """Leave the owner. It drops lists that are queued, finishes those that run, and frees the buffers."""
        if self._lost is None:
            self._lost = OwnerLost(f"client {self.name!r} has been closed; connect again")
            self._finalizer()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    # Messages

    def _request(self, message: Message) -> Message:
        self._send(message)
        return self._await_reply()

    def _await_reply(self) -> Message:
        while self._reply is None:
            self._receive(None)
        reply, self._reply = self._reply, None
        if reply["is"] == "refused":
            raise RequestRefused(f"the owner at {self.address} refuses: {reply['error']}")
        return reply

    def _send(self, message: Message) -> None:
        if self._lost is not None:
            raise self._lost
        try:
            self._channel.send(message)
        except OSError as error:
            while self._receive(time.monotonic() + _LAST_WORDS_SECONDS):
                pass  # a message may say why
            self._lose(f"the owner at {self.address} does not listen any more ({error}); start it again")

    def _drain(self) -> None:
        while self._receive(time.monotonic()):
            pass

    def _receive(self, deadline: float | None) -> bool:
        """Receive one message. Returns False if none has come by the deadline."""
        if self._lost is not None:
            raise self._lost
        try:
            if not self._channel.poll(None if deadline is None else deadline - time.monotonic()):
                return False
            message = self._channel.receive()
            if message.get("descriptor"):
                message["descriptor"] = self._channel.receive_descriptor()
        except (EOFError, OSError, MalformedMessage) as error:
            self._lose(f"the owner at {self.address} is gone ({type(error).__name__}); start it again and connect anew")
        kind = message["is"]
        if kind == "done":
            self._tickets.pop(message["ticket"])._outcome = True
        elif kind == "failed":
            text = f"list {message['ticket']} failed: {message['error']}"
            self._tickets.pop(message["ticket"])._outcome = ListFailed(text, message["call"])
            self._failures += bool(message["first"])
        elif kind == "closing":
            self._lose(f"{message['error']}; client {self.name!r} cannot go on")
        else:
            self._reply = message
        return True

    def _lose(self, why: str) -> None:
        self._lost = OwnerLost(why)
        self._finalizer()
        raise self._lost


def _leave(channel: Channel) -> None:
    channel.hang_up()
    channel.close()


def connect(
    address: str, *, name: str | None = None, authkey: bytes | None = None, timeout: float | None = 10.0
) -> Client:
    """Connect to the owner at an address.

    Args:
        address: path of its Unix socket.
        name: of this client, shown in errors and traces.
        authkey: the secret of the owner, if it has one.
        timeout: how long the owner may take to start [s].

    Raises:
        OwnerLost: nobody listens, or the owner refuses the authkey.
    """
    deadline = None if timeout is None else time.monotonic() + timeout
    while True:
        try:
            connection = open_connection(address, "AF_UNIX", authkey)
            break
        except (FileNotFoundError, ConnectionRefusedError) as error:
            if deadline is not None and time.monotonic() >= deadline:
                raise OwnerLost(
                    f"no owner listens at {address}; start one with "
                    f"python -m simengine_scheduler.service --address {address}"
                ) from error
            time.sleep(_RETRY_SECONDS)
        except (AuthenticationError, EOFError, OSError) as error:
            raise OwnerLost(f"the owner at {address} does not take this client ({error}); check the authkey") from error
    return Client(Channel(connection), address, name if name is not None else f"process {os.getpid()}")
