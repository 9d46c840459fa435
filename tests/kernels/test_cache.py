"""Compiled kernels on disk: whole files or none, however many processes start at once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from simengine.kernels.cache import cache_dir, cached, digest

WRITER = """
import sys, time
from pathlib import Path
from simengine.kernels.cache import cached

def build(target: Path) -> None:
    with open("builds", "a") as log:
        log.write(sys.argv[1])
    with target.open("wb") as file:
        for _ in range(20):
            file.write(sys.argv[1].encode() * 5000)
            file.flush()
            time.sleep(0.005)

path = cached("shared.so", build)
content = path.read_bytes()
assert len(content) == 100000 and len(set(content)) == 1, "read half a file"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SIMENGINE_CACHE_DIR", str(tmp_path / "kernels"))
    return tmp_path / "kernels"


def test_builds_once(folder: Path) -> None:
    calls = []

    def build(target: Path) -> None:
        calls.append(target)
        target.write_text("content")

    first, second = cached("a.so", build), cached("a.so", build)
    assert first == second == folder / "a.so"
    assert first.read_text() == "content"
    assert len(calls) == 1
    assert calls[0] != first, "built in place, where another process could read half of it"


def test_a_failed_build_leaves_nothing(folder: Path) -> None:
    def build(target: Path) -> None:
        target.write_text("half")
        raise RuntimeError("out of luck")

    with pytest.raises(RuntimeError, match="out of luck"):
        cached("a.so", build)
    assert list(folder.iterdir()) == []


def test_processes_that_start_together_build_once_and_each_read_a_whole_file(folder: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-c", WRITER]
    started = [subprocess.Popen([*command, letter], cwd=tmp_path, stderr=subprocess.PIPE) for letter in "abcd"]
    errors = [process.communicate()[1].decode() for process in started]
    assert [process.returncode for process in started] == [0] * 4, errors
    assert [path.name for path in folder.iterdir()] == ["shared.so"]
    assert len((tmp_path / "builds").read_text()) == 1


def test_a_key_depends_on_every_part_and_their_borders() -> None:
    keys = {digest("a", "b"), digest("ab"), digest("ab", ""), digest("b", "a"), digest("a", "c")}
    assert len(keys) == 5
    assert digest("a", "b") == digest("a", "b")


def test_where_the_cache_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMENGINE_CACHE_DIR", str(tmp_path / "own"))
    assert cache_dir() == tmp_path / "own"
    monkeypatch.delenv("SIMENGINE_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_dir() == tmp_path / "simengine"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache_dir() == tmp_path / "home" / ".cache" / "simengine"
