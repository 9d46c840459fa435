"""What compiled code of the scheduler is built with."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

from simengine_scheduler.native import compiling

pytestmark = pytest.mark.skipif(compiling.compiler() is None, reason="needs a C++ compiler")


def test_flags_of_the_environment_come_before_those_of_a_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMENGINE_CACHE_DIR", str(tmp_path / "cache"))
    source = tmp_path / "number.cpp"
    source.write_text('extern "C" int number() { return 10 * FIRST + SECOND; }')

    def number(flags: str) -> int:
        monkeypatch.setenv("CXXFLAGS", flags)
        options = ["-shared", "-USECOND", "-DSECOND=4"]
        return int(ctypes.CDLL(str(compiling.build("number.so", [source], options))).number())

    assert number("-DFIRST=1 -DSECOND=2") == 14
    assert number("-DFIRST=3") == 34  # another file, not that of other flags
