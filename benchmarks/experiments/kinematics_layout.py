"""Experiment 2: kinematics through global memory, world-major with 4-32 lanes a world against field-major."""

from __future__ import annotations

from typing import Any

import cupy as cp
import numpy as np

from . import ant_tree
from .harness import Launch, Source, block_threads, blocks, device_us, poison

TABLES = ant_tree.tables()
WORLD_MAJOR = {lanes: f"kinematics_world_major<{lanes}>" for lanes in (4, 8, 16, 32)}
FIELD_MAJOR = {lanes: f"kinematics_field_major<{lanes}>" for lanes in (1, 4)}
SOURCE = Source(("tree.cu", "stages.cu"), (*WORLD_MAJOR.values(), *FIELD_MAJOR.values()), TABLES.defines)
WORLDS = (64, 512, 8192, 32768)


class Fields:
    """Inputs and outputs of kinematics for a number of worlds, on the device, in both layouts of qpos."""

    def __init__(self, num_worlds: int) -> None:
        self.num_worlds = num_worlds
        qpos = ant_tree.random_qpos(num_worlds)
        self.qpos, self.qpos_field_major = cp.asarray(qpos), cp.asarray(np.ascontiguousarray(qpos.T))
        self.integers, self.floats = cp.asarray(TABLES.integers), cp.asarray(TABLES.floats)
        self.xpos, self.xquat, self.xmat = (
            cp.zeros(num_worlds * ant_tree.NBODY * n, dtype=cp.float32) for n in (3, 4, 9)
        )

    def arguments(self, qpos: cp.ndarray, repeats: int) -> list[Any]:
        """Arguments of either kinematics kernel."""
        outputs = (self.xpos, self.xquat, self.xmat)
        return [qpos, *outputs, self.integers, self.floats, self.num_worlds, repeats]


def world_major(functions: dict[str, int], fields: Fields, lanes: int, repeats: int = 1) -> Launch:
    """Kinematics with ``lanes`` lanes a world, repeated ``repeats`` times inside the kernel."""
    threads = fields.num_worlds * lanes
    block = block_threads(threads)
    return Launch(functions[WORLD_MAJOR[lanes]], blocks(threads, block), block, fields.arguments(fields.qpos, repeats))


def field_major(functions: dict[str, int], fields: Fields, lanes: int) -> Launch:
    """Kinematics with the world index fastest and ``lanes`` threads a world in the block's y direction."""
    block = max(32, block_threads(fields.num_worlds * lanes) // lanes)
    arguments = fields.arguments(fields.qpos_field_major, 1)
    return Launch(functions[FIELD_MAJOR[lanes]], blocks(fields.num_worlds, block), (block, lanes), arguments)


def run() -> tuple[dict[str, Any], list[str]]:
    """Measure every layout; returns the results and the summary's lines."""
    functions = SOURCE.load()
    results: dict[str, Any] = {"us": {}, "same_bits": True}
    for num_worlds in WORLDS:
        row, xmats = {}, []
        fields = Fields(num_worlds)
        for lanes in WORLD_MAJOR:
            poison(fields.xmat)
            row[f"wm{lanes}"] = device_us([world_major(functions, fields, lanes)])
            xmats.append(fields.xmat.get())
        for lanes in FIELD_MAJOR:
            poison(fields.xmat)
            row[f"fm{lanes}"] = device_us([field_major(functions, fields, lanes)])
            xmats.append(fields.xmat.get().reshape(-1, num_worlds).T.ravel())
        results["us"][num_worlds] = row
        results["same_bits"] &= all(np.array_equal(x, xmats[0]) for x in xmats[1:])
    header = "worlds " + " ".join(f"{k:>8}" for k in results["us"][WORLDS[0]])
    lines = [f"2 kinematics, us a launch (wm/fm: world-/field-major, lanes; same bits: {results['same_bits']})", header]
    lines += [f"{w:6d} " + " ".join(f"{t:8.2f}" for t in row.values()) for w, row in results["us"].items()]
    return results, lines
