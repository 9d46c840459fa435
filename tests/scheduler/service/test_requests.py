"""Requests: refusals with a reason and without side effects, invalid messages, libraries, and who may connect."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
from collections import deque
from collections.abc import Iterator
from itertools import repeat
from multiprocessing.connection import Client as open_connection
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simengine_scheduler.service import Client, ClientCall, ListFailed, OwnerLost, RequestRefused, connect
from simengine_scheduler.service.calls import Kernel
from simengine_scheduler.service.channel import Channel, MalformedMessage
from simengine_scheduler.service.wire import (
    Access,
    BufferAddress,
    access_from_wire,
    access_to_wire,
    argument_from_wire,
    argument_to_wire,
    call_from_wire,
)
from tests.scheduler.service.owners import Gate, make_owner

SOURCE = """
#include <cstdint>
#include <cstring>
extern "C" void axpy(const uint64_t* slots) {  // n, a, x, y
    float a;
    std::memcpy(&a, &slots[1], 4);
    const float* x = reinterpret_cast<const float*>(slots[2]);
    float* y = reinterpret_cast<float*>(slots[3]);
    for (int i = 0; i < static_cast<int32_t>(slots[0]); i++) y[i] += a * x[i];
}
extern "C" int32_t refuse(const uint64_t* slots) { return static_cast<int32_t>(slots[0]); }
"""


@pytest.fixture
def client() -> Iterator[Client]:
    with make_owner() as owner, connect(owner.address, name="c") as client:
        yield client


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("no C++ compiler")
    folder = tmp_path_factory.mktemp("library")
    (folder / "kernels.cpp").write_text(SOURCE)
    target = folder / "kernels.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", str(folder / "kernels.cpp"), "-o", str(target)], check=True)
    return target


def test_functions_of_a_library(client: Client, library: Path) -> None:
    x, y = client.allocate("x", (2, 4)), client.allocate("y", 8)
    assert (x.shape, x.dtype, y.dtype) == ((2, 4), np.float32, np.float32)
    axpy = client.library(library, "axpy")
    x[:] = np.arange(8).reshape(2, 4)
    half = ClientCall("axpy", axpy, (4, np.float32(2), ("x", 16), "y"), reads=["x"], updates=["y"])
    step = client.define([half, half])
    client.submit(step).wait(20)
    assert y.tolist() == [16, 20, 24, 28, 0, 0, 0, 0]
    status = client.library(library, "refuse", status=True)
    client.submit(client.define([ClientCall("fine", status, (0,))])).wait(20)
    with pytest.raises(ListFailed, match="call 'bad' of client 'c' failed: RuntimeError: the kernel reports status 3"):
        client.submit(client.define([half, ClientCall("bad", status, (3,), updates=["y"]), half])).wait(20)
    assert y[0] == 24  # the call before the failure, none after it
    with pytest.raises(RequestRefused, match=r"library .*kernels.so has no function 'gone'"):
        client.library(library, "gone")
    with pytest.raises(RequestRefused, match="nowhere.so"):
        client.library("nowhere.so", "axpy")


def test_what_is_refused_is_said_and_the_client_goes_on(client: Client) -> None:
    client.allocate("x", 4, np.uint64)
    mix = client.function("mix")

    def define(*args: Any, **accesses: Any) -> None:
        client.define([ClientCall("k", mix, args, **accesses)])

    refusals: list[tuple[str, Any]] = [
        ("has a buffer 'x' already", lambda: client.allocate("x", 1)),
        (r"shape \(0,\) has no elements", lambda: client.allocate("y", 0)),
        ("dtype '|O' is not one of plain numbers", lambda: client.allocate("y", 1, object)),
        ("there is no shared buffer 'y'; its owner allocates it with shared=True", lambda: client.attach("y")),
        ("has no buffer 'y'; it has x", lambda: client.free("y")),
        ("the owner offers no function 'eval'; it offers fail, mix", lambda: client.function("eval")),
        ("use Client.library", lambda: client.cuda("", "k")),
        ("has no buffer 'y'", lambda: define(1, "x", "y", reads=["x"], updates=["y"])),
        ("call 'k' takes buffer 'x' but declares no access to it", lambda: define(1, "x")),
        ("takes whole buffers", lambda: define(1, ("x", 8), reads=["x"])),
        ("access .* is not a buffer's name", lambda: define(1, reads=[("x", "0")])),
        ("names kernel 7 of 1", lambda: client.define([ClientCall("k", Kernel("k", 7))])),
        ("graph=True needs an owner of a GPU", lambda: client.define([], graph=True)),
    ]
    for message, request in refusals:
        with pytest.raises(RequestRefused, match=message):
            request()
    with pytest.raises(TypeError, match=r"argument 1 is a float; pass an int, a numpy scalar such as np.float32\(x\)"):
        define(1, 0.5)
    step = client.define([ClientCall("k", mix, (1, "x", "x"), updates=["x"])])
    with pytest.raises(RequestRefused, match="buffer 'x' is used by list 0; forget the list first"):
        client.free("x")
    client.submit(step).wait(20)
    client.forget(step)
    with pytest.raises(ListFailed, match="client 'c' has no list 0"):
        client.submit(step).wait(20)
    client.free("x")
    assert not client.allocate("x", 4, np.uint64).any()


def greeted(connection: Any) -> Channel:
    """A channel to an owner that knows its client as `bad`."""
    channel = Channel(connection)
    channel.send({"is": "hello", "name": "bad"})
    assert channel.receive()["is"] == "welcome"
    return channel


@pytest.mark.parametrize(
    ("message", "error"),
    [({"is": "shutdown"}, "there is no request 'shutdown'"), ({"is": "free", "name": 3}, "where one expects str")],
)
def test_a_request_that_no_client_makes_is_refused(message: dict[str, Any], error: str) -> None:
    with make_owner() as owner:
        channel = greeted(open_connection(owner.address, "AF_UNIX"))
        channel.send(message)
        reply = channel.receive()
        assert reply["is"] == "refused"
        assert error in reply["error"]
        channel.close()


@pytest.mark.parametrize("garbage", [b"\x80\x04", b"[]", b'{"is": 3}', b'{"name": "x"}'])
def test_a_malformed_message_ends_its_client_only(garbage: bytes) -> None:
    with make_owner() as owner, connect(owner.address, name="good") as good:
        connection = open_connection(owner.address, "AF_UNIX")
        bad = greeted(connection)
        connection.send_bytes(garbage)
        assert "has been sent" in bad.receive()["error"]
        with pytest.raises((EOFError, OSError)):
            bad.receive()
        bad.close()
        good.submit(good.define([])).wait(20)


def test_submissions_beyond_the_limit_are_refused_by_the_owner_too() -> None:
    gate = Gate()
    with make_owner(limit=3, gate=gate) as owner, connect(owner.address, name="c") as client:
        held = client.define([ClientCall("gate", client.function("gate"))])
        client.limit = 10  # a client that does not keep to it
        tickets = [client.submit(held) for _ in range(5)]
        for ticket in tickets[3:]:
            with pytest.raises(ListFailed, match="client 'c' has 3 lists under way already, its limit"):
                ticket.wait(20)
        gate.open.set()
        tickets[2].wait(20)


def test_a_client_that_reads_nothing_is_given_up() -> None:
    with make_owner() as owner, connect(owner.address, name="good") as good:
        deaf = connect(owner.address, name="deaf")
        step = deaf.define([])
        deaf.limit = 10**6
        with pytest.raises(OwnerLost):
            deque(map(deaf.submit, repeat(step)), maxlen=0)
        good.submit(good.define([])).wait(20)
        assert owner.clients == ["good"]


def test_a_wrong_authkey_is_refused_and_the_socket_is_its_users_alone() -> None:
    with make_owner(authkey=b"secret") as owner:
        assert stat.S_IMODE(os.stat(owner.address).st_mode) == 0o600
        with connect(owner.address, authkey=b"secret") as client:
            client.submit(client.define([])).wait(20)
            with pytest.raises(OwnerLost, match="does not take this client .* check the authkey"):
                connect(owner.address, authkey=b"guess")
            client.submit(client.define([])).wait(20)


ARGUMENTS = st.one_of(
    st.none(),
    st.integers(-(2**31), 2**31 - 1),
    st.floats(width=32, allow_nan=False).map(np.float32),
    st.floats(allow_nan=False).map(np.float64),
    st.integers(0, 2**64 - 1).map(np.uint64),
    st.booleans().map(np.bool_),
)


@given(ARGUMENTS)
def test_arguments_survive_the_wire(argument: Any) -> None:
    found = argument_from_wire(json.loads(json.dumps(argument_to_wire(0, argument))))
    assert type(found) is type(argument)
    assert found == argument


def test_buffers_and_accesses_survive_the_wire() -> None:
    assert argument_from_wire(argument_to_wire(0, ("x", 8))) == BufferAddress("x", 8)
    assert access_from_wire(access_to_wire("x")) == Access("x")
    assert access_from_wire(access_to_wire(("x", 2))) == Access("x", 2)
    assert access_from_wire(access_to_wire(("x", 2, "size", 1))) == Access("x", 2, ("size", 1))


LEAF = st.none() | st.integers(-9, 9) | st.sampled_from(["", "x", "<f4", "0000"])
KEYS = st.sampled_from(["dtype", "bytes", "buffer", "offset"])
JSON = LEAF | st.lists(LEAF | st.lists(LEAF, max_size=4) | st.dictionaries(KEYS, LEAF, max_size=3), max_size=3)
FIELDS = ["name", "kernel", "args", "reads", "writes", "updates", "grid", "block", "shared"]


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(st.sampled_from(FIELDS), JSON) | JSON)
def test_whatever_comes_is_a_call_or_is_refused(value: Any) -> None:
    try:
        call = call_from_wire(value)
    except (MalformedMessage, ValueError):
        return
    assert isinstance(call.name, str)
