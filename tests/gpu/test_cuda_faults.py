"""A kernel that writes where no memory is: every executor says so in one sentence, and in order it names the call."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from tests.gpu.compare import cuda_only

# A fault ends the context, so it happens in a process of its own.
FAULT = """
import json, sys
from simengine import Simulation
from simengine_scheduler import CallError
options = json.loads(sys.argv[1])
sim = Simulation("ant", 64, backend="cuda", **options)
sim.step(2)
sim.synchronize()
buffer = sim._engine.stores[0].buffer("qvel")
buffer.rebind(64, 8)
try:
    sim.step(2)
    sim.synchronize()
except CallError as error:
    print(json.dumps({"fatal": error.fatal, "call": error.call.name, "said": str(error)}))
"""
HOW: dict[str, dict[str, Any]] = {
    "each in order": {"executor": "serial", "emission": "counted", "executor_options": {"check_each": True}},
    "in order": {"executor": "serial", "emission": "counted"},
    "streams": {"executor": "streams", "emission": "counted"},
    "whole steps": {"executor": "graph-cached"},
    "ahead": {"executor": "graph-cached", "emission": "ahead"},
}


@cuda_only
@pytest.mark.parametrize("how", HOW)
def test_a_fault_is_told_in_one_sentence(backend: str, how: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", FAULT, json.dumps(HOW[how])], capture_output=True, text=True, check=False, timeout=120
    )
    lines = [line for line in ran.stdout.splitlines() if line.startswith("{")]
    assert lines, ran.stderr[-2000:]
    told = json.loads(lines[-1])
    assert told["fatal"]
    assert "a CUDA fault ended the context and was noticed at call" in told["said"]
    assert told["call"] in told["said"]
    assert told["said"].count(". ") == 0
