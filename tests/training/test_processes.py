"""Worlds divided among processes, as two processes of one CPU device each."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.training.test_run import assert_same

ALONE = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count="


def started(devices: int, **settings: Any) -> subprocess.Popen[str]:
    """A process with a number of devices."""
    path = os.pathsep.join(filter(None, sys.path))
    environment = os.environ | {"XLA_FLAGS": f"{ALONE}{devices}", "PYTHONPATH": path, "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-m", "tests.training.sharing", json.dumps(settings)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finished(processes: list[subprocess.Popen[str]]) -> list[tuple[int, str]]:
    """Exit codes of processes, and what they wrote to stderr."""
    with ExitStack() as stack:
        for process in processes:
            stack.enter_context(process)
            stack.callback(process.kill)
        printed = [process.communicate(timeout=100)[1] for process in processes]
    return [(process.returncode, text) for process, text in zip(processes, printed, strict=True)]


def alone(**settings: Any) -> None:
    """Train in one process with two devices."""
    ((code, printed),) = finished([started(2, **settings)])
    assert code == 0, printed


def together(own: dict[int, dict[str, Any]] | None = None, **settings: Any) -> list[tuple[int, str]]:
    """Train in two processes with one device each, and with settings that each has for itself."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    shared = {"processes": 2, "port": port, **settings}
    return finished([started(1, **{**shared, "index": index, **(own or {}).get(index, {})}) for index in range(2)])


@pytest.fixture
def arguments(tiny: Any) -> dict[str, Any]:
    found: dict[str, Any] = tiny(devices=2).as_dict()
    return found


@pytest.mark.slow
def test_two_processes_have_the_bits_of_one(tmp_path: Path, arguments: dict[str, Any]) -> None:
    alone(folder=str(tmp_path / "one"), arguments=arguments)
    done = together(folder=str(tmp_path / "two"), arguments=arguments)
    assert [code for code, _ in done] == [0, 0], done
    assert_same(tmp_path / "one", tmp_path / "two")


@pytest.mark.slow
def test_pieces_in_two_processes_and_in_one_are_the_whole(tmp_path: Path, arguments: dict[str, Any]) -> None:
    """The training is stopped by its time and by an interruption, and goes on in two processes and in one."""
    alone(folder=str(tmp_path / "one"), arguments=arguments)
    parts = str(tmp_path / "parts")
    assert [code for code, _ in together(folder=parts, arguments=arguments, max_seconds=0.0)] == [0, 0]
    assert json.loads((tmp_path / "parts" / "summary.json").read_text())["updates"] == 1
    codes = [code for code, _ in together({0: {"stop": 3}}, folder=parts, resume=True)]
    assert all(codes)
    assert not json.loads((tmp_path / "parts" / "summary.json").read_text())["finished"]
    alone(folder=parts, resume=True)
    assert_same(tmp_path / "one", tmp_path / "parts")


@pytest.mark.slow
def test_a_checkpoint_of_one_process_goes_on_in_two_until_the_target(tmp_path: Path, arguments: dict[str, Any]) -> None:
    """Only the first process evaluates, and both stop."""
    arguments["target_return"] = -1e6
    alone(folder=str(tmp_path), arguments=arguments, max_seconds=0.0)
    done = together(folder=str(tmp_path), resume=True)
    assert [code for code, _ in done] == [0, 0], done
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert (summary["updates"], summary["finished"]) == (2, True)


@pytest.mark.slow
@pytest.mark.parametrize("index", [0, 1])
def test_an_error_in_one_process_ends_both(index: int, tmp_path: Path, arguments: dict[str, Any]) -> None:
    done = together({index: {"fail": 3}}, folder=str(tmp_path), arguments=arguments)
    assert all(code == 1 for code, _ in done), done
    assert "a row cannot be shown" in done[index][1]
    assert f"process {index} failed: a row cannot be shown" in done[1 - index][1]


def test_wrong_numbers_of_devices_are_named(tmp_path: Path, arguments: dict[str, Any]) -> None:
    done = together(folder=str(tmp_path), arguments=arguments | {"devices": 1})
    assert all(code == 1 for code, _ in done)
    for _, printed in done:
        assert "devices is 1, and the 2 processes have 2 devices of kind 'cpu'; set devices to 2" in printed


@pytest.mark.slow
def test_a_folder_that_is_not_shared_is_named(tmp_path: Path, arguments: dict[str, Any]) -> None:
    done = together({1: {"folder": str(tmp_path / "elsewhere")}}, folder=str(tmp_path / "here"), arguments=arguments)
    assert all(code == 1 for code, _ in done)
    for _, printed in done:
        assert "of the first process is not there in another one; name a folder that all hosts share" in printed
