"""`simengine train --ray`, in a cluster that the command starts on this machine."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from simengine.cli.main import main
from tests.training import point
from tests.training.test_processes import alone, finished
from tests.training.test_run import assert_same

pytest.importorskip("ray")


def ran(arguments: list[str], temporary: str) -> subprocess.Popen[str]:
    """A command, which finds no cluster but its own."""
    path = os.pathsep.join(filter(None, sys.path))
    return subprocess.Popen(
        [sys.executable, "-m", "simengine.cli.main", *arguments],
        env=os.environ | {"PYTHONPATH": path, "JAX_PLATFORMS": "cpu", "RAY_TMPDIR": temporary},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def trained(arguments: dict[str, Any], folder: Path, temporary: str, *options: str) -> subprocess.Popen[str]:
    """The command, while it trains in processes with a CPU device each."""
    settings = [f"{name}={json.dumps(value)}" for name, value in arguments.items() if not name.startswith("env_")]
    settings += [f"env.{name}={json.dumps(value)}" for name, value in arguments["env_arguments"].items()]
    call = ["train", f"tests.training.own:{point.ID}", *settings, "--out", str(folder), *options, "--ray"]
    return ran(call, temporary)


@pytest.fixture
def temporary() -> Iterator[str]:
    """A folder for Ray, whose sockets need a short path."""
    with tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as folder:
        yield folder


@pytest.fixture
def arguments(tiny: Any) -> dict[str, Any]:
    found: dict[str, Any] = tiny(devices=2).as_dict()
    del found["target_return"]
    return found


@pytest.mark.slow
def test_workers_have_the_bits_of_one_process_and_resume(
    tmp_path: Path, temporary: str, arguments: dict[str, Any]
) -> None:
    alone(folder=str(tmp_path / "one"), arguments=arguments)
    ((code, printed),) = finished([trained(arguments, tmp_path / "ray", temporary, "--minutes", "0")])
    assert code == 3, printed
    call = ["train", "--resume", str(tmp_path / "ray"), "--import", "tests.training.own", "--json", "--ray"]
    with ran(call, temporary) as resumed:
        out, printed = resumed.communicate(timeout=100)
    assert resumed.returncode == 0, printed
    (training,) = json.loads(out)["trainings"]
    assert [row["update"] for row in training["curve"]] == [1, 2, 3, 4, 5, 6]
    assert [f"update {number}/6" in printed for number in (1, 2, 6)] == [False, True, True]
    assert printed.count("evaluation: return") == 3
    assert_same(tmp_path / "one", tmp_path / "ray")


@pytest.mark.slow
def test_an_error_of_the_workers_is_one_sentence(tmp_path: Path, temporary: str, arguments: dict[str, Any]) -> None:
    arguments["env_arguments"] |= {"broken": True, "terminate": False}
    ((code, printed),) = finished([trained(arguments, tmp_path, temporary)])
    assert code == 1
    assert "update 1 made the loss non-finite; lower learning_rate" in printed
    assert printed.count("\n") == 1


@pytest.mark.slow
def test_ctrl_c_ends_the_workers(tmp_path: Path, temporary: str, arguments: dict[str, Any]) -> None:
    process = trained(arguments | {"total_steps": 8 * 16 * 10_000}, tmp_path, temporary)
    assert process.stderr is not None
    line = process.stderr.readline()
    assert "update 1/10000" in line
    process.send_signal(signal.SIGINT)
    ((code, printed),) = finished([process])
    assert code == 130, printed
    written = (tmp_path / "times.csv").read_bytes()
    time.sleep(3)
    assert (tmp_path / "times.csv").read_bytes() == written


@pytest.mark.slow
def test_too_many_devices_are_named(tmp_path: Path, temporary: str, arguments: dict[str, Any]) -> None:
    changed = {"devices": 1000, "num_envs": 1000, "total_steps": 16_000}
    ((code, printed),) = finished([trained(arguments | changed, tmp_path, temporary)])
    assert code == 1
    assert "devices is 1000, and the Ray cluster has" in printed


def test_a_cluster_that_does_not_answer_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", point.ID, "--out", str(tmp_path), "--ray", "localhost:1"]) == 1
    assert re.search(
        r"no Ray cluster answers at localhost:1 \(.+\); start one with: ray start", capsys.readouterr().err
    )
