"""Faults on a GPU: a kernel that writes where no memory is, memory that ends while arrays grow, damaged kernels.

A fault of the GPU ends its context, so each trial is a process of its own, which runs `benchmarks.faults.on_gpu`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.faults.outcome import PYTHONPATH, Outcomes, finished, is_one_sentence, started

HOW: dict[str, dict[str, Any]] = {
    "serial, each call": {"executor": "serial", "emission": "counted", "executor_options": {"check_each": True}},
    "serial": {"executor": "serial", "emission": "counted"},
    "streams": {"executor": "streams", "emission": "counted"},
    "graph-cached": {"executor": "graph-cached"},
    "graph-cached, ahead": {"executor": "graph-cached", "emission": "ahead"},
}
"""Ways of issuing: options of `Simulation`."""

_MORE = (1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20)  # bytes that are left


def told_of_a_write(how: str) -> tuple[dict[str, Any], str]:
    """What `on_gpu.write_beyond` tells of a way of issuing, and the end of what its process wrote beside that."""
    lines, error = _printed("write", json.dumps(HOW[how]))
    return lines[-1] if lines else {"fatal": False, "call": "", "said": ""}, error


def writing_beyond() -> Outcomes:
    """Let a kernel write where no memory is, with each way of issuing."""
    out = Outcomes("a write where no memory is", "a step on a GPU")
    for how in HOW:
        told, error = told_of_a_write(how)
        if told["fatal"] and told["said"].count(". ") == 0 and told["call"] in told["said"]:
            out.found += 1
        else:
            out.wrong.append(f"{how}: {told['said'] or error[-300:]}")
    return out


def ending_memory() -> Outcomes:
    """Let memory end while arrays grow in a step. Then there is memory again, and the same simulation goes on."""
    out = Outcomes("memory that ends", "a step on a GPU")
    for how, options in HOW.items():
        if "check_each" in options.get("executor_options", {}):
            continue
        lines, error = _printed("memory", json.dumps(options), *map(str, _MORE))
        if len(lines) < len(_MORE):
            out.wrong.append(f"{how}: {error[-300:]}")
        for told in lines:
            if not told["same"]:
                out.wrong.append(f"{how}, {told['more']} bytes: other bits afterwards")
            elif told["said"] is None:
                out.harmless += 1
            elif "memory" in told["said"].lower() and "\n" not in told["said"]:
                out.found += 1
            else:
                out.wrong.append(f"{how}, {told['more']} bytes: {told['said']}")
    return out


def damaged_kernels(fault: str, folder: Path, command: Sequence[str], trials: int, seed: int) -> Outcomes:
    """Damage all compiled kernels in the cache of a run, and run again: they are built again, with the same bits."""
    here, rng = folder / fault.replace(" ", "-"), np.random.default_rng(seed)
    own, out = {"SIMENGINE_CACHE_DIR": str(here / "cache")}, Outcomes(fault, "all kernels of a run on a GPU")
    here.mkdir()
    run = [*command, "--save", "run.npz"]
    code, said = finished(started(run, here, own))
    kernels = sorted((here / "cache").rglob("*.cubin"))
    if code or not kernels:
        raise RuntimeError(f"the run fails without a fault, or keeps no kernels: {said}")
    whole = (here / "run.npz").read_bytes()
    for _ in range(trials):
        for path in kernels:
            path.write_bytes(DAMAGES[fault](bytearray(path.read_bytes()), rng))
        (here / "run.npz").unlink()
        code, said = finished(started(run, here, own))
        if code == 0 and (here / "run.npz").read_bytes() == whole:
            out.recovered += 1
            continue
        if code == 1 and is_one_sentence(said):
            out.found += 1
        else:
            out.wrong.append(f"exit code {code}: {said[-300:]}")
        break  # there is nothing to damage again
    return out


def _flipped(content: bytearray, rng: np.random.Generator) -> bytes:
    place = int(rng.integers(8 * len(content)))
    content[place // 8] ^= 1 << place % 8
    return bytes(content)


def _torn(content: bytearray, rng: np.random.Generator) -> bytes:
    return bytes(content[: int(rng.integers(len(content)))])


DAMAGES: dict[str, Callable[[bytearray, np.random.Generator], bytes]] = {
    "a flipped bit": _flipped,
    "a torn file": _torn,
}
"""What is done to a compiled kernel."""


def _printed(*arguments: str) -> tuple[list[dict[str, Any]], str]:
    """What `on_gpu` printed in a process of its own, and the end of what it wrote to standard error."""
    ran = subprocess.run(
        [sys.executable, "-m", "benchmarks.faults.on_gpu", *arguments],
        env={**os.environ, "PYTHONPATH": PYTHONPATH, "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    return [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")], ran.stderr[-2000:]
