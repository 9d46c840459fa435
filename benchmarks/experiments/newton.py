"""Experiment 5: the dense work of Newton iterations by size class, and what bucketing worlds by their rows buys."""

from __future__ import annotations

from typing import Any

import cupy as cp
import numpy as np

from .ant_tree import NV
from .harness import Launch, Source, block_threads, blocks, device_us, graph_us
from .kinematics_layout import TABLES

FORMS = {f"{lanes} lanes, {column}": f"newton<{lanes}, {flag}>"
         for lanes in (16, 32) for column, flag in (("shuffles", "false"), ("shared", "true"))}  # fmt: skip
SOURCE = Source(("tree.cu", "newton.cu"), tuple(FORMS.values()), TABLES.defines)
ROWS = (4, 8, 16, 32, 64)
MAX_ROWS = ROWS[-1]
WORLDS = (64, 512, 8192)
BUCKET_ITERATIONS = 5


class Problem:
    """Random positive definite systems for a number of worlds, on the device."""

    def __init__(self, num_worlds: int) -> None:
        rng = np.random.default_rng(num_worlds)
        self.num_worlds = num_worlds
        jacobian = np.zeros((num_worlds, MAX_ROWS, 16), dtype=np.float32)
        jacobian[:, :, :NV] = rng.standard_normal((num_worlds, MAX_ROWS, NV), dtype=np.float32)
        root = rng.standard_normal((num_worlds, NV, NV), dtype=np.float32)
        mass = 4.0 * np.eye(NV, dtype=np.float32) + root @ root.transpose(0, 2, 1) / NV
        force = np.zeros((num_worlds, 16), dtype=np.float32)
        force[:, :NV] = rng.standard_normal((num_worlds, NV), dtype=np.float32)
        stiffness = rng.uniform(0.5, 2.0, (num_worlds, MAX_ROWS)).astype(np.float32)
        self.J, self.D, self.M, self.g = (cp.asarray(a) for a in (jacobian, stiffness, mass, force))
        self.x = cp.zeros((num_worlds, 16), dtype=cp.float32)
        self.all_worlds = cp.asarray(np.arange(num_worlds, dtype=np.int32))

    def launch(self, function: int, lanes: int, nefc: cp.ndarray, rows_shared: int, iterations: int,
               worlds: cp.ndarray | None = None) -> Launch:  # fmt: skip
        """Iterations on the listed worlds (all by default), each with its own number of rows."""
        worlds = self.all_worlds if worlds is None else worlds
        threads = worlds.size * lanes
        block = block_threads(threads)
        counts = [worlds.size, MAX_ROWS, rows_shared, iterations]
        arguments = [self.J, self.D, self.M, self.g, self.x, worlds, nefc, *counts]
        shared = 4 * (17 * rows_shared + 20) * (block // lanes)
        return Launch(function, blocks(threads, block), block, arguments, shared)

    def same_rows(self, rows: int) -> cp.ndarray:
        """nefc with every world at ``rows``."""
        return cp.asarray(np.full(self.num_worlds, rows, dtype=np.int32))

    def error(self, rows: int) -> float:
        """Largest |x - solution| of the last single iteration, against NumPy in double precision (64 worlds)."""
        J, D, M, g, x = (a[:64].get().astype(np.float64) for a in (self.J, self.D, self.M, self.g, self.x))
        J, D, g = J[:, :rows, :NV], D[:, :rows], g[:, :NV, None]
        solution = np.linalg.solve(M + J.transpose(0, 2, 1) @ (D[:, :, None] * J), g)[..., 0]
        return float(np.abs(solution - x[:, :NV]).max())


def _lanes(form: str) -> int:
    return int(form.split()[0])


def _iteration_us(problem: Problem, function: int, form: str, rows: int) -> float:
    nefc = problem.same_rows(rows)
    few, many = (problem.launch(function, _lanes(form), nefc, rows, n) for n in (2, 22))
    return (device_us([many], inner=5) - device_us([few], inner=5)) / 20


def _buckets_us(problem: Problem, function: int, form: str) -> dict[str, float]:
    """Launch times [us] of 5 iterations when 90 % of the worlds have 8 rows and 10 % have 64."""
    lanes = _lanes(form)
    rows = np.where(np.random.default_rng(1).random(problem.num_worlds) < 0.9, 8, 64).astype(np.int32)
    nefc, padded = cp.asarray(rows), problem.same_rows(64)
    lists = [np.flatnonzero(rows == r).astype(np.int32) for r in (64, 8)]
    large, small, heavy_first = (cp.asarray(a) for a in (*lists, np.concatenate(lists)))

    def launch(counts: cp.ndarray, rows_shared: int, worlds: cp.ndarray | None = None) -> Launch:
        return problem.launch(function, lanes, counts, rows_shared, BUCKET_ITERATIONS, worlds)

    bucketed = [launch(nefc, 64, large), launch(nefc, 8, small)]

    second = cp.cuda.Stream(non_blocking=True)
    events = [cp.cuda.Event(disable_timing=True) for _ in range(20)]

    def side_by_side(stream: cp.cuda.Stream) -> None:
        for fork, join in zip(events[:10], events[10:], strict=True):
            fork.record(stream)
            second.wait_event(fork)
            bucketed[0](stream.ptr)
            bucketed[1](second.ptr)
            join.record(second)
            stream.wait_event(join)

    return {
        "padded to 64": device_us([launch(padded, 64)]),
        "two buckets": device_us(bucketed),
        "two buckets, two streams": graph_us(side_by_side) / 10,
        "one launch, own rows": device_us([launch(nefc, 64)]),
        "one launch, heavy first": device_us([launch(nefc, 64, heavy_first)]),
    }


def run() -> tuple[dict[str, Any], list[str]]:
    """Measure every form and the buckets; returns the results and the summary's lines."""
    functions = SOURCE.load()
    results: dict[str, Any] = {"us_per_iteration": {}, "buckets_us": {}, "largest_error": 0.0}
    for num_worlds in WORLDS:
        problem = Problem(num_worlds)
        table: dict[str, dict[int, float]] = {}
        for form, name in FORMS.items():
            table[form] = {rows: _iteration_us(problem, functions[name], form, rows) for rows in ROWS}
            for rows in (ROWS[0], MAX_ROWS):
                problem.launch(functions[name], _lanes(form), problem.same_rows(rows), rows, 1)(0)
                cp.cuda.runtime.deviceSynchronize()
                results["largest_error"] = max(results["largest_error"], problem.error(rows))
        results["us_per_iteration"][num_worlds] = table
        best = min(FORMS, key=lambda form: table[form][8])
        results["buckets_us"][num_worlds] = {"form": best, **_buckets_us(problem, functions[FORMS[best]], best)}
    return results, _lines(results)


def _lines(results: dict[str, Any]) -> list[str]:
    lines = [f"5 Newton iteration nv {NV}, us (max error {results['largest_error']:.1e})"
             + "".join(f"{f'r={r}':>9}" for r in ROWS)]  # fmt: skip
    for num_worlds, table in results["us_per_iteration"].items():
        for form, row in table.items():
            lines.append(f"  {num_worlds:5d} worlds, {form:20s}   " + "".join(f"{t:9.2f}" for t in row.values()))
    lines.append("  90 % r=8, 10 % r=64, 5 iterations, us a launch:")
    for num_worlds, row in results["buckets_us"].items():
        cells = ", ".join(f"{k} {v:.1f}" for k, v in row.items() if k != "form")
        lines.append(f"  {num_worlds:5d} worlds ({row['form']}): {cells}")
    return lines
