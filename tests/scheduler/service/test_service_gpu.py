"""Clients of an owner of a GPU, in processes of their own: results, sharing, refusals, a killed client, a fault."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simengine_scheduler.service import Owner, serve
from tests.helpers.checkout import PYTHONPATH

pytestmark = pytest.mark.gpu

WIDTH = 64
CLIENT = r'''
import sys
import time

import cupy
import numpy as np

from simengine_scheduler import service

SOURCE = """
extern "C" __global__ void mix(unsigned long long number, const unsigned long long* a, unsigned long long* b) {
    unsigned long long before = b[threadIdx.x], value = a[threadIdx.x];
    long long began = clock64();
    while (clock64() - began < 5000) { }  // reads early and writes late, so that an illegal order shows
    b[threadIdx.x] = before * 31ull + value * 6364136223846793005ull + number;
}
extern "C" __global__ void stray(unsigned long long* a) { a[1ull << 40] = 1; }
"""
what, address, first = sys.argv[1], sys.argv[2], int(sys.argv[3])
client = service.connect(address, name=f"c{first}", timeout=60)
names = ["a", "b", "c"]
arrays = [client.allocate(name, 64, np.uint64) for name in names]
assert not any(a.get().any() for a in arrays)
kernel = client.cuda(SOURCE, "mix")


def mix(number, a, b, block=64):
    args = (np.uint64(number), a, b)
    return service.ClientCall(f"mix{number}", kernel, args, [a], (), [b], grid=(1,), block=(block,))


step = client.define([mix(first + k, names[k % 3], names[(k + 1) % 3]) for k in range(6)], graph=what == "graph")
if what in ("work", "graph"):
    arrays[0][:] = first  # CuPy's own kernel, before the owner's
    for ticket in [client.submit(step) for _ in range(20)]:
        ticket.wait(60)
    print(b"".join(a.get().tobytes() for a in arrays).hex())
elif what == "share":
    shared = client.allocate("shared", 64, np.uint64, shared=True) if first == 0 else client.attach("shared")
    print("ready", flush=True)
    sys.stdin.readline()
    together = client.define([mix(7, "shared", "shared")])
    for ticket in [client.submit(together) for _ in range(20)]:
        ticket.wait(60)
    print("done", flush=True)
    sys.stdin.readline()
    print(shared.get().tobytes().hex())
elif what == "refused":
    wide = client.define([mix(1, "a", "b"), mix(2, "a", "b", block=4096), mix(3, "a", "b")])
    try:
        client.submit(wide).wait(60)
    except service.ListFailed as error:
        assert error.call == "mix2", error
    assert (arrays[1].get() == 1).all()
    client.submit(client.define([mix(5, "a", "b")])).wait(60)
    assert (arrays[1].get() == 31 + 5).all()
    try:
        client.cuda("no kernel", "mix")
    except service.RequestRefused as error:
        print("refused", "cannot be loaded" in str(error))
elif what == "forever":
    print("ready", flush=True)
    while True:
        client.submit(step)
elif what in ("stray", "witness"):
    print("ready", flush=True)
    sys.stdin.readline()
    try:
        if what == "stray":
            bad = client.cuda(SOURCE, "stray")
            call = service.ClientCall("stray", bad, ("a",), updates=["a"], grid=(1,), block=(1,))
            client.submit(client.define([call]))
        while True:
            client.submit(step).wait(60)
    except service.OwnerLost as error:
        print("lost", "CUDA fault ended the context" in str(error), flush=True)
    import os
    os._exit(0)  # the client's own mappings of the owner's memory are gone too
'''


@pytest.fixture
def clients(cupy: Any) -> Iterator[Any]:
    started: list[subprocess.Popen[str]] = []

    def start(what: str, address: str, first: int) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", CLIENT, what, address, str(first)]
        environment = {**os.environ, "PYTHONPATH": PYTHONPATH}
        pipe = subprocess.PIPE
        started.append(subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, text=True))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def go(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()


def mixed(first: int, steps: int = 20) -> str:
    arrays = [np.full(WIDTH, first if k == 0 else 0, np.uint64) for k in range(3)]
    for _ in range(steps):
        for k in range(6):
            a, b = arrays[k % 3], arrays[(k + 1) % 3]
            b[:] = b * np.uint64(31) + a * np.uint64(6364136223846793005) + np.uint64(first + k)
    return b"".join(a.tobytes() for a in arrays).hex()


def owner_of(completion: str) -> Owner:
    return serve(executor="streams", completion=completion)


@pytest.mark.parametrize("completion", ["events", "polling"])
@pytest.mark.parametrize("what", ["work", "graph"])
def test_clients_get_the_bits_that_each_would_get_alone(clients: Any, what: str, completion: str) -> None:
    with owner_of(completion) as owner:
        processes = [clients(what, owner.address, 100 * k) for k in range(3)]
        assert [line(process) for process in processes] == [mixed(100 * k) for k in range(3)]
        assert [process.wait(60) for process in processes] == [0, 0, 0]


def test_a_buffer_shared_on_purpose(clients: Any) -> None:
    with owner_of("events") as owner:
        one = clients("share", owner.address, 0)
        assert line(one) == "ready"
        two = clients("share", owner.address, 1)
        assert line(two) == "ready"
        for process in (one, two):
            go(process)
        assert [line(process) for process in (one, two)] == ["done", "done"]
        for process in (one, two):
            go(process)
        value = np.zeros(WIDTH, np.uint64)
        for _ in range(40):
            value = value * np.uint64(31) + value * np.uint64(6364136223846793005) + np.uint64(7)
        assert [line(process) for process in (one, two)] == [value.tobytes().hex()] * 2


def test_refusals_leave_a_client_and_its_owner_as_they_were(clients: Any) -> None:
    with owner_of("events") as owner:
        process = clients("refused", owner.address, 0)
        assert line(process) == "refused True"
        assert process.wait(60) == 0


def test_a_killed_client_harms_nobody(clients: Any) -> None:
    with owner_of("events") as owner:
        victim = clients("forever", owner.address, 0)
        assert line(victim) == "ready"
        worker = clients("work", owner.address, 100)
        victim.kill()
        assert line(worker) == mixed(100)
        again = clients("work", owner.address, 300)
        assert line(again) == mixed(300)


def test_a_fault_ends_the_owner_and_every_client_is_told(clients: Any, tmp_path: Path) -> None:
    address = str(tmp_path / "owner")
    command = [sys.executable, "-m", "simengine_scheduler.service", "--address", address, "--executor", "streams"]
    pipe = subprocess.PIPE
    environment = {**os.environ, "PYTHONPATH": PYTHONPATH}
    with subprocess.Popen(command, env=environment, stdout=pipe, stderr=pipe, text=True) as owner:
        processes = [clients(what, address, k) for k, what in enumerate(("stray", "witness"))]
        assert [line(process) for process in processes] == ["ready", "ready"]
        for process in reversed(processes):
            go(process)
        assert [line(process) for process in processes] == ["lost True", "lost True"]
        _, errors = owner.communicate(timeout=60)
    assert owner.returncode == 1
    assert errors.startswith("error: a CUDA fault ended the context")
    assert "check_each=True" in errors
