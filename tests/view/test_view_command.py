"""`simengine view` without a browser: wrong calls, what it prints, and the server."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import urllib.request
import webbrowser
from collections.abc import Iterator
from pathlib import Path

import pytest

from simengine.cli.main import main
from simengine.view.session import Session
from tests.cli import own_task
from tests.cli.refusals import assert_refused

QUIET = ["--worlds", "2", "--backend", "host", "--no-browser"]


@pytest.fixture
def taken_port() -> Iterator[int]:
    """A port on which something else listens."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        yield other.getsockname()[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing"], "no model 'nothing'"),
        (["hummanoid"], "did you mean 'humanoid'"),
        (["ant", "--worlds", "0"], "not a whole number of at least 1"),
        (["ant", "--ctrl", "wild"], "invalid choice: 'wild'"),
        (["ant", "--port", "70000"], "'70000' is no port"),
        (["ant", "--seconds", "-1"], "'-1' is no time"),
        (["ant", "--keyframe", "up", *QUIET], "has no keyframe 'up'"),
        (["ant", "--keyframe", "3", *QUIET], "has no keyframe 3"),
        (["ant", "--actions", "zero"], "--actions is for environments, and 'ant' is a model"),
        (["simengine/Ants-v5"], "no environment 'simengine/Ants-v5' (did you mean 'simengine/Ant-v5'"),
        (["simengine/Ant-v5", "--ctrl", "zero"], "--ctrl is for models, and simengine/Ant-v5 is an environment"),
        (["simengine/Ant-v5", "--keyframe", "0"], "--keyframe is for models"),
        (["simengine/Ant-v5", "--policy", "none"], "there is no policy at 'none'"),
        (["simengine/MixedLocomotion-v0"], "have several models, and a page shows worlds of one"),
        (["ant", "--host", "no.such.host.invalid", *QUIET], "cannot be served at no.such.host.invalid"),
    ],
)
def test_wrong_call_is_refused(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert_refused(["view", *arguments], message, capsys)


def test_taken_port_is_refused(taken_port: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert_refused(["view", "ant", *QUIET, "--port", str(taken_port)], f"port {taken_port}", capsys)


def test_missing_extra_is_named() -> None:
    """In a process where the package cannot be imported, as where it is not installed."""
    code = """
import sys
class Hide:
    def find_spec(self, name, path=None, target=None):
        if name == "viser" or name.startswith("viser."):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Hide())
from simengine.cli.main import main
sys.exit(main(["view", "ant"]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 2
    assert done.stderr == (
        "simengine: the page needs the package 'viser', which is not installed; install what it needs with: "
        "pip install 'simengine[view]'\n"
    )


@pytest.mark.parametrize("ctrl", ["random", "zero"])
def test_it_steps_at_real_time_and_reports(ctrl: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["view", "inverted_pendulum", *QUIET, "--ctrl", ctrl, "--seconds", "1.5", "--json"]) == 0
    printed = capsys.readouterr()
    assert printed.out.count("\n") == 1
    result = json.loads(printed.out)
    assert (result["worlds"], result["backend"], result["frozen"]) == (2, "host", 0)
    assert 1.5 <= result["seconds"] < 3
    assert 5 <= result["steps"] <= 1.6 / 0.02
    assert result["url"] in printed.err


@pytest.mark.parametrize("actions", ["random", "zero"])
def test_an_environment_steps_at_real_time_and_reports(actions: str, capsys: pytest.CaptureFixture[str]) -> None:
    call = ["view", "simengine/InvertedPendulum-v5", *QUIET, "--actions", actions, "--seconds", "2", "--json"]
    assert main(call) == 0
    printed = capsys.readouterr()
    assert printed.out.count("\n") == 1
    result = json.loads(printed.out)
    assert (result["environment"], result["actions"]) == ("simengine/InvertedPendulum-v5", f"{actions} actions")
    assert (result["worlds"], result["backend"], result["frozen"]) == (2, "host", 0)
    assert 5 <= result["steps"] <= 2.1 / 0.04
    assert f"{actions} actions: {result['url']}" in printed.err
    if actions == "random":
        assert result["episodes"] > 0
        assert result["return_mean"] < 30


@pytest.mark.slow
def test_a_policy_acts_in_an_environment_of_a_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with own_task.in_folder(tmp_path, monkeypatch):
        own_task.policy().save("policy.npz")
        call = [*QUIET, "--import", own_task.MODULE, "--policy", "policy.npz", "--seconds", "2.5", "--json"]
        assert main(["view", "Upright-v0", *call]) == 0
        of_the_id = json.loads(capsys.readouterr().out)
        assert main(["view", "inverted_pendulum", *call]) == 0
        of_the_model = json.loads(capsys.readouterr().out)
    for result in (of_the_id, of_the_model):
        assert (result["environment"], result["actions"]) == ("Upright-v0", "policy policy.npz")
        assert result["episodes"] >= 2
        assert result["return_mean"] == 40  # every episode lasts


def test_the_page_is_served_and_a_browser_opened(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = []

    def look(url: str) -> bool:
        with urllib.request.urlopen(url, timeout=10) as answer:
            opened.append((url, answer.status, answer.read()))
        return True

    monkeypatch.setattr(webbrowser, "open", look)
    assert main(["view", "inverted_pendulum", "--worlds", "2", "--backend", "host", "--seconds", "0.5"]) == 0
    ((url, status, text),) = opened
    assert status == 200
    assert b"<html" in text
    assert url in capsys.readouterr().out


def test_interrupting_is_the_usual_end(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Session, "tick", interrupted)
    assert main(["view", "inverted_pendulum", *QUIET, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["steps"] == 0
