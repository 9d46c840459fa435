"""Real processes: clients and owners that are killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from simengine_scheduler.service import OwnerLost, connect
from tests.helpers.checkout import PYTHONPATH
from tests.scheduler.service.owners import Blocks, make_owner, mixed, step_of
from tests.scheduler.service.test_service import BUFFERS, bits, until, with_arrays

CLIENT = """
import sys
import numpy as np
from simengine_scheduler.service import ClientCall, connect

client = connect(sys.argv[1], name="victim")
arrays = [client.allocate(name, 4, np.uint64) for name in "abc"]
mix = client.function("mix")
step = client.define([ClientCall("mix", mix, (k, "a", "b"), reads=["a"], updates=["b"]) for k in range(20)])
client.submit(step).wait()
print("ready", flush=True)
while True:
    client.submit(step)
"""


@pytest.fixture
def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": PYTHONPATH}


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen[str]]]:
    processes: list[subprocess.Popen[str]] = []
    yield processes
    for process in processes:
        process.kill()
        process.communicate()


def test_a_killed_client_harms_nobody(environment: dict[str, str], started: list[subprocess.Popen[str]]) -> None:
    blocks = Blocks()
    with make_owner("threads", workers=2, blocks=blocks) as owner:
        good, arrays = with_arrays(owner.address, "good")
        step = step_of(good, BUFFERS)
        good.submit(step).wait(20)
        process = subprocess.Popen(
            [sys.executable, "-c", CLIENT, owner.address], env=environment, stdout=subprocess.PIPE, text=True
        )
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        tickets = [good.submit(step) for _ in range(20)]
        process.send_signal(signal.SIGKILL)  # amid its submissions
        tickets += [good.submit(step) for _ in range(20)]
        for ticket in tickets:
            ticket.wait(20)
        until(lambda: owner.clients == ["good"])
        until(lambda: blocks.held == len(BUFFERS))
        assert blocks.given > len(BUFFERS)
        good.submit(step).wait(20)
        assert bits(arrays) == mixed(42)


def test_a_killed_owner_is_told_apart_and_may_be_started_again(
    environment: dict[str, str], started: list[subprocess.Popen[str]], tmp_path: Path
) -> None:
    address = str(tmp_path / "owner")
    command = [sys.executable, "-m", "simengine_scheduler.service", "--address", address, "--workers", "2"]

    def start() -> subprocess.Popen[str]:
        started.append(subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True))
        return started[-1]

    process = start()
    client = connect(address, name="c", timeout=30)
    array = client.allocate("x", 4)
    step = client.define([])
    client.submit(step).wait(20)
    process.send_signal(signal.SIGKILL)
    process.wait(20)
    with pytest.raises(OwnerLost, match=f"the owner at {address} .*start it again"):
        client.submit(step).wait(20)
    with pytest.raises(OwnerLost, match="start it again"):
        client.submit(step)
    array[:] = 1  # the array lives as long as its client wants
    assert array.sum() == np.float32(4)
    again = start()  # at the same address, though the socket was left there
    with connect(address, timeout=30) as second:
        second.submit(second.define([])).wait(20)
    again.send_signal(signal.SIGTERM)
    assert again.wait(20) == 0
    assert not os.path.exists(address)


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs Linux")
def test_a_signal_that_another_thread_receives_ends_the_command(tmp_path: Path, environment: dict[str, str]) -> None:
    """With CUDA there are many threads, and which one gets a signal is the system's choice."""
    command = [sys.executable, "-m", "simengine_scheduler.service", "--address", str(tmp_path / "owner")]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert "listens" in process.stdout.readline()
            others = [int(task.name) for task in Path(f"/proc/{process.pid}/task").iterdir()]
            os.kill(next(task for task in others if task != process.pid), signal.SIGTERM)
            assert process.wait(10) == 0
        finally:
            process.kill()


def test_the_command_says_why_it_cannot_listen(environment: dict[str, str]) -> None:
    command = [sys.executable, "-m", "simengine_scheduler.service", "--address", "/nowhere/owner"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("error: no owner can listen at /nowhere/owner")
