"""A simulation that is freed waits for its work, and one that outlives its modules says nothing."""

from __future__ import annotations

import subprocess
import sys

import pytest

import simengine
from simengine.backends.host import HostBackend

# Modules that the interpreter cannot free are emptied, the program's own as the last of them.
_OUTLIVES = """
import codecs, sys
import simengine
sim = simengine.Simulation("ant", 1, backend="host", executor="serial")
codecs.register(lambda name, held=list(sys.modules.values()): None)
"""


def test_the_end_of_a_program_is_silent() -> None:
    ended = subprocess.run([sys.executable, "-c", _OUTLIVES], capture_output=True, text=True, timeout=120, check=True)
    assert ended.stderr == ""


def test_memory_is_freed_once_its_work_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    sim = simengine.Simulation("ant", 1, backend="host", executor="serial")
    drained: list[HostBackend] = []
    monkeypatch.setattr(HostBackend, "drain", lambda backend: drained.append(backend))
    del sim  # which nothing in it refers to, so that no collection of garbage is needed
    assert len(drained) == 1
