"""Compiled kernels on disk: whole files or none, however many processes start at once."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from simengine_scheduler.native.cache import cache_dir, cached, digest

WRITER = """
import sys, time
from pathlib import Path
from simengine_scheduler.native.cache import cached

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


def counted() -> tuple[list[Path], Callable[[Path], None]]:
    """A build, and the list of the paths at which it was asked to write."""
    calls: list[Path] = []

    def build(target: Path) -> None:
        calls.append(target)
        target.write_bytes(b"machine code")

    return calls, build


@pytest.mark.parametrize("damage", [b"", b"machine", b"machinE code"])
def test_a_damaged_file_is_built_again(folder: Path, damage: bytes) -> None:
    calls, build = counted()
    path = cached("a.so", build)
    path.write_bytes(damage)
    with pytest.warns(UserWarning, match="a.so' was damaged, so it is built again"):
        assert cached("a.so", build).read_bytes() == b"machine code"
    assert len(calls) == 2
    assert cached("a.so", build) == path
    assert len(calls) == 2


def test_a_file_without_a_checksum_is_built_again(folder: Path) -> None:
    calls, build = counted()
    cached("a.so", build)
    (folder / "a.so.sha256").unlink()
    assert cached("a.so", build).read_bytes() == b"machine code"
    assert len(calls) == 2


def test_a_file_that_others_can_write_is_built_again(folder: Path) -> None:
    calls, build = counted()
    cached("a.so", build).chmod(0o646)
    path = cached("a.so", build)
    assert len(calls) == 2
    assert path.stat().st_mode & 0o022 == 0


def test_a_program_can_be_run(folder: Path) -> None:
    def build(target: Path) -> None:
        target.write_text("#!/bin/sh\necho runs\n")
        target.chmod(0o777)

    path = cached("program", build)
    assert subprocess.run([path], capture_output=True, text=True, check=True).stdout == "runs\n"
    assert path.stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("mask", [0o000, 0o002, 0o077])
def test_files_are_written_by_their_owner_alone(folder: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        calls, build = counted()
        path = cached("a.so", build)
        assert cached("a.so", build) == path == folder / "a.so"
    finally:
        os.umask(before)
    assert len(calls) == 1
    assert [p.stat().st_mode & 0o777 & (0o022 | mask) for p in (folder, path)] == [0, 0]


def test_a_folder_that_others_can_write_is_not_used(folder: Path) -> None:
    calls, build = counted()
    folder.mkdir()
    (folder / "a.so").write_bytes(b"planted")
    folder.chmod(0o777)
    with pytest.warns(
        UserWarning, match=r"kernels' cannot be used \(other users can write to it\).*SIMENGINE_CACHE_DIR"
    ):
        path = cached("a.so", build)
    assert path.parent != folder
    assert path.read_bytes() == b"machine code"
    assert cached("a.so", build) == path, "built twice in one process"
    assert len(calls) == 1


def test_a_folder_of_another_user_is_not_used(folder: Path) -> None:
    if os.geteuid():
        pytest.skip("only root can give a folder to another user")
    calls, build = counted()
    folder.mkdir()
    os.chown(folder, 12345, 12345)
    with pytest.warns(UserWarning, match="it belongs to user 12345"):
        assert cached("a.so", build).parent != folder
    assert len(calls) == 1


def test_a_folder_that_cannot_be_made_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SIMENGINE_CACHE_DIR", str(tmp_path / "file" / "kernels"))
    calls, build = counted()
    with pytest.warns(UserWarning, match=r"cannot be used \(Not a directory\)"):
        assert cached("a.so", build).read_bytes() == b"machine code"
    assert len(calls) == 1


def test_a_full_disk_builds_once_into_a_temporary_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls, build = counted()
    flush = os.fsync

    def full(handle: int) -> None:
        if str(folder) in os.readlink(f"/proc/self/fd/{handle}"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        flush(handle)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.warns(UserWarning, match=r"cannot be used \(No space left on device\)"):
        path = cached("a.so", build)
    assert path.read_bytes() == b"machine code"
    assert len(calls) == 1
    assert list(folder.iterdir()) == []


def test_what_killed_processes_left_is_removed(folder: Path) -> None:
    _, build = counted()
    folder.mkdir()
    old = [folder / ".b.so.lock", folder / "b.so.123.part"]
    for path in old:
        path.write_text("")
        os.utime(path, (0, 0))
    new = folder / "c.so.124.part"
    new.write_text("")
    cached("a.so", build)
    assert [path.exists() for path in old] == [False, False]
    assert new.exists(), "another process writes it now"


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
    assert sorted(path.name for path in folder.iterdir()) == ["shared.so", "shared.so.sha256"]
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
