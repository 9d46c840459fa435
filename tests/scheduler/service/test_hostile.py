"""Clients that send anything: the owner refuses it or hangs up, other clients do not notice, and nothing is left."""

from __future__ import annotations

import gc
import json
import os
import random
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from multiprocessing.connection import Client as open_connection
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
import pytest

from simengine_scheduler.service import Owner, OwnerLost, RequestRefused, connect, serve
from tests.scheduler.service.owners import make_owner

HELLO = {"is": "hello", "name": "fuzzed"}
VALID: list[dict[str, Any]] = [
    {"is": "allocate", "name": "x", "shape": [4, 2], "dtype": "<f4", "shared": False},
    {"is": "allocate", "name": "y", "shape": [4], "dtype": "<f8", "shared": True},
    {"is": "attach", "name": "y"},
    {"is": "free", "name": "x"},
    {"is": "kernel", "function": "mix"},
    {
        "is": "define",
        "graph": False,
        "calls": [
            {
                "name": "c",
                "kernel": 0,
                "args": [1, {"buffer": "x", "offset": 0}, {"dtype": "<f4", "bytes": "0000803f"}, None],
                "reads": [["x"]],
                "writes": [],
                "updates": [["x", 0, "f", 1]],
                "grid": [1],
                "block": [1],
                "shared": 0,
            }
        ],
    },
    {"is": "submit", "list": 0, "ticket": 1, "failures": 0},
    {"is": "forget", "list": 0},
]
ODD: tuple[Any, ...] = (
    *(
        None,
        True,
        -1,
        0,
        2**31,
        2**63,
        2**200,
        1e308,
        "",
        "x" * 5000,
        "\ud800",
        "\x00",
        "../../x",
        ",",
        "(3,)f4",
        "O",
        "V8",
    ),
    *([], {}, [[]], [{}], ["x", 0, "f"], [2**62, 2**62], {"buffer": []}, {"dtype": "O", "bytes": "zz"}),
)


@pytest.fixture
def failures(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """What threads of the owner have raised and nobody has caught."""
    found: list[Any] = []
    monkeypatch.setattr(threading, "excepthook", found.append)
    yield found
    assert found == []


def mutated(rng: random.Random, value: Any) -> Any:
    """A message with something odd somewhere."""
    if rng.random() < 0.15:
        return rng.choice(ODD)
    if isinstance(value, dict):
        changed = {key: mutated(rng, entry) if rng.random() < 0.5 else entry for key, entry in value.items()}
        if rng.random() < 0.1 and changed:
            del changed[rng.choice(list(changed))]
        return changed
    if isinstance(value, list):
        return [mutated(rng, entry) for entry in value] * rng.choice((1, 1, 1, 2))
    return rng.choice(ODD) if rng.random() < 0.4 else value


def framed(rng: random.Random, data: bytes) -> bytes:
    """Bytes as they go through the socket: whole, cut off, with another length, or with none."""
    kind = rng.randrange(6)
    length = struct.pack("!i", len(data))
    if kind == 0:
        return (length + data)[: rng.randrange(len(data) + 4)]
    if kind == 1:
        return struct.pack("!i", rng.choice((-2, -(2**31), 2**31 - 1, len(data) + 9))) + data
    if kind == 2:
        return struct.pack("!iQ", -1, rng.choice((0, 2**40, 2**64 - 1))) + data
    return rng.randbytes(rng.randrange(1, 200)) if kind == 3 else length + data


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def assert_alive(owner: Owner) -> None:
    """A good client is served."""
    with connect(owner.address, name="good") as client:
        array = client.allocate("z", 3, np.float64)
        array[:] = 1
        assert array.sum() == 3


def raw(owner: Owner) -> socket.socket:
    found = socket.socket(socket.AF_UNIX)
    found.connect(owner.address)
    return found


def hung_up(connection: socket.socket) -> bool:
    """Send the first byte of a length that never ends, or learn that nobody reads it."""
    try:
        connection.sendall(b"\0")
    except OSError:
        return True
    return False


def read_away(connection: Connection) -> None:
    """Read what the owner has said, so that it need not wait. Memory that it gives travels beside it."""
    while connection.poll(0.002):
        if not os.read(connection.fileno(), 1 << 16):
            raise EOFError


@pytest.mark.parametrize("seed", range(3))
def test_odd_messages_are_refused(seed: int, failures: list[Any]) -> None:
    rng = random.Random(seed)
    with make_owner() as owner:
        for _ in range(25):
            with open_connection(owner.address, "AF_UNIX") as connection:
                try:
                    connection.send_bytes(json.dumps(mutated(rng, HELLO) if rng.random() < 0.2 else HELLO).encode())
                    for message in VALID:
                        odd = rng.random() < 0.4
                        connection.send_bytes(json.dumps(mutated(rng, message) if odd else message).encode())
                        read_away(connection)
                except (OSError, EOFError):
                    continue  # hung up on
        assert_alive(owner)
        until(lambda: not owner.clients)


def test_bytes_that_are_no_messages_end_their_connection_only(failures: list[Any]) -> None:
    rng = random.Random(0)
    with make_owner() as owner, connect(owner.address, name="watching") as watching:
        for _ in range(150):
            with raw(owner) as connection:
                try:
                    connection.sendall(framed(rng, json.dumps(HELLO).encode()))
                    connection.sendall(framed(rng, json.dumps(rng.choice(VALID)).encode()))
                except OSError:
                    continue
        assert watching.allocate("w", 2).size == 2
        assert_alive(owner)
        until(lambda: owner.clients == ["watching"])


@pytest.mark.parametrize("data", [b"[" * 100_000, b"9" * 50_000, b"\xff\xfe", b"", b'{"is": 3}', b"null"])
def test_json_that_is_too_deep_or_none_is_told(data: bytes, failures: list[Any]) -> None:
    with make_owner() as owner:
        with open_connection(owner.address, "AF_UNIX") as connection:
            connection.send_bytes(json.dumps(HELLO).encode())
            connection.recv_bytes()
            connection.send_bytes(data)
            said = json.loads(connection.recv_bytes())
            assert said["is"] == "closing"
            assert "has been sent" in said["error"]
        assert_alive(owner)


def test_nothing_is_left_of_hostile_clients(failures: list[Any]) -> None:
    rng = random.Random(5)
    with make_owner() as owner:
        assert_alive(owner)
        gc.collect()
        before = [len(os.listdir("/proc/self/fd")), threading.active_count(), len(owner._shared.slots)]
        for _ in range(40):
            with raw(owner) as connection:
                connection.sendall(rng.randbytes(rng.randrange(1, 60)))

        def nothing_left() -> bool:
            now = [len(os.listdir("/proc/self/fd")), threading.active_count(), len(owner._shared.slots)]
            return owner._channels == {} and all(n <= then + 1 for n, then in zip(now, before, strict=True))

        until(nothing_left)


def test_who_says_nothing_is_hung_up_on() -> None:
    with (
        serve(executor="serial", greeting=0.3) as owner,
        connect(owner.address, name="slow to work") as client,
        raw(owner) as silent,
        raw(owner) as dripping,
    ):
        silent.settimeout(10)
        until(lambda: hung_up(dripping))
        assert silent.recv(1) == b""
        assert client.allocate("x", 1).size == 1, "a client that has greeted may wait as long as it likes"


def test_connections_beyond_the_limit_are_told_and_others_stay() -> None:
    with serve(executor="serial", connections=2) as owner:
        first, second = connect(owner.address, name="1"), connect(owner.address, name="2")
        with pytest.raises(OwnerLost, match="has its 2 connections; try again later"):
            connect(owner.address, name="3")
        second.close()
        until(lambda: owner.clients == ["1"])
        with connect(owner.address, name="4") as fourth:
            assert fourth.allocate("x", 1).size == first.allocate("x", 1).size
        first.close()


def test_connections_that_are_refused_take_no_place() -> None:
    """However long they stay: here they never read that they are refused, and never hang up."""
    with serve(executor="serial", connections=2) as owner:
        first, second = connect(owner.address, name="1"), connect(owner.address, name="2")
        refused = [raw(owner) for _ in range(20)]
        for connection in refused:
            until(partial(hung_up, connection))
        second.close()
        until(lambda: owner.clients == ["1"])
        with connect(owner.address, name="3") as third:
            assert third.allocate("x", 1).size == first.allocate("x", 1).size
        first.close()
        for connection in refused:
            connection.close()


def test_memory_beyond_the_limit_is_refused_and_comes_back() -> None:
    with serve(executor="serial", memory_limit=1000) as owner:
        with connect(owner.address, name="a") as client:
            client.allocate("x", 200, np.float32)
            with pytest.raises(
                RequestRefused, match="800 bytes beside the 800 that are taken exceed the owner's limit"
            ):
                client.allocate("y", 200, np.float32)
            client.free("x")
            client.allocate("y", 250, np.float32)
        until(lambda: not owner.clients)
        until(lambda: owner._shared.taken == 0)
        with connect(owner.address, name="b") as other:
            assert other.allocate("z", 250, np.float32).size == 250


@pytest.mark.parametrize("shape", [[2**62, 2**62], [2**200], [2**40]])
def test_more_memory_than_there_is_is_refused(shape: list[int], failures: list[Any]) -> None:
    with make_owner() as owner, connect(owner.address, name="c") as client:
        with pytest.raises(RequestRefused, match="exceed the owner's limit"):
            client.allocate("x", tuple(shape))
        assert owner._shared.taken == 0
        assert_alive(owner)


@pytest.mark.parametrize("given", [{"connections": 0}, {"greeting": 0}, {"limit": 0}])
def test_limits_that_let_nobody_in_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="give"):
        serve(executor="serial", **given)
