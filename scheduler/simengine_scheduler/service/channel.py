"""Messages between clients and their owner: plain data as JSON over a Unix socket, never pickles.

A message is an object whose entry `is` names its kind. File descriptors of shared memory travel beside messages.
"""

from __future__ import annotations

import contextlib
import json
import select
import socket
import struct
import threading
from multiprocessing.connection import Connection
from typing import Any

MAX_BYTES = 1 << 24  # bytes of one message

Message = dict[str, Any]


class MalformedMessage(ValueError):
    """A message that the protocol does not allow in the present state of the connection."""


class Channel:
    """One end of a connection. Any thread may send. One thread at a time may receive.

    A peer is given up if its socket is full and it reads nothing for `patience` seconds.
    """

    def __init__(self, connection: Connection, patience: float | None = None) -> None:
        self._connection = connection
        self._sending = threading.Lock()
        self._socket = socket.fromfd(connection.fileno(), socket.AF_UNIX, socket.SOCK_STREAM)
        if patience is not None:
            limit = struct.pack("ll", int(patience), int(patience % 1 * 1e6))
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
        self._readable = select.poll()
        self._readable.register(connection.fileno(), select.POLLIN)

    def send(self, message: Message, descriptor: int | None = None) -> None:
        """Send a message, and a file descriptor after it if given. Raises OSError if the peer is gone or stuck."""
        data = json.dumps(message, separators=(",", ":")).encode()
        with self._sending:
            self._connection.send_bytes(data)
            if descriptor is not None:
                socket.send_fds(self._socket, [b"\0"], [descriptor])

    def receive(self) -> Message:
        """Wait for a message. Raises EOFError or OSError if the peer is gone, or MalformedMessage."""
        data = self._connection.recv_bytes(MAX_BYTES)
        try:
            message = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise MalformedMessage(f"{len(data)} bytes that are no JSON ({error})") from error
        if not isinstance(message, dict) or not isinstance(message.get("is"), str):
            raise MalformedMessage(f"{data[:80]!r} is no object with an entry 'is'")
        return message

    def receive_descriptor(self) -> int:
        """Return the file descriptor that came after the latest message."""
        _, descriptors, _, _ = socket.recv_fds(self._socket, 1, 1)
        if len(descriptors) != 1:
            raise OSError("the peer is gone")
        return descriptors[0]

    def poll(self, seconds: float | None) -> bool:
        """Whether a message or the end of the connection arrives within some seconds. None waits for ever."""
        return bool(self._readable.poll(None if seconds is None else max(seconds, 0.0) * 1e3))

    def hang_up(self) -> None:
        """End the connection, also for a thread that is waiting in `receive`."""
        with contextlib.suppress(OSError):  # the peer has ended it
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the file descriptors. Whoever sends afterwards gets an OSError."""
        with self._sending:
            self._socket.close()
            self._connection.close()


def take(message: Message, name: str, kind: type | tuple[type, ...]) -> Any:
    """Return an entry of a message. Raises MalformedMessage unless the entry exists and has that type."""
    value = message.get(name)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is int):
        expected = " or ".join(k.__name__ for k in (kind if isinstance(kind, tuple) else (kind,)))
        raise MalformedMessage(f"message {message.get('is')!r} has {name}={value!r} where one expects {expected}")
    return value
