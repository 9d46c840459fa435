"""The notice that kernels are being compiled."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from simengine.cli.results.output import compile_notice
from simengine_scheduler.native.cache import cached


def write(target: Path) -> None:
    target.write_text("a kernel")


@pytest.mark.parametrize("terminal", [True, False])
def test_compiling_is_said_once_and_on_a_terminal_alone(
    terminal: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SIMENGINE_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal, raising=False)
    cached("before.so", write)
    with compile_notice():
        cached("before.so", write)
        assert capsys.readouterr().err == ""  # it was in the cache
        cached("first.so", write)
        cached("second.so", write)
    cached("after.so", write)
    said = f"compiling kernels, which later runs find in {tmp_path}\n"
    assert capsys.readouterr().err == (said if terminal else "")
