"""Experiment 4: exclusive scan of 12 count columns over worlds, one block a column, with and without compaction."""

from __future__ import annotations

from typing import Any

import cupy as cp
import numpy as np

from .harness import Launch, Source, device_us

SOURCE = Source(("scan.cu",), ("scan_columns<false>", "scan_columns<true>"))
COLUMNS = 12
WORLDS = (64, 8192, 32768)


def run() -> tuple[dict[str, Any], list[str]]:
    """Measure both forms and check them against NumPy; returns the results and the summary's lines."""
    functions = SOURCE.load()
    results: dict[str, Any] = {"us": {}, "correct": True}
    for num_worlds in WORLDS:
        rng = np.random.default_rng(num_worlds)
        counts = rng.integers(1, 9, (COLUMNS, num_worlds), dtype=np.int32)
        counts[rng.random(counts.shape) < 0.6] = 0
        offsets, listed = (cp.asarray(np.full_like(counts, -1)) for _ in range(2))
        totals, nlisted = cp.zeros(COLUMNS, dtype=cp.int32), cp.zeros(COLUMNS, dtype=cp.int32)
        arguments = [cp.asarray(counts), offsets, totals, listed, nlisted, num_worlds]
        results["us"][num_worlds] = {
            form: device_us([Launch(functions[f"scan_columns<{flag}>"], COLUMNS, 1024, arguments)])
            for form, flag in (("scan", "false"), ("scan+compact", "true"))
        }
        expected = np.cumsum(counts, axis=1) - counts
        same = np.array_equal(offsets.get(), expected) and np.array_equal(totals.get(), counts.sum(axis=1))
        for column in range(COLUMNS):
            worlds = np.flatnonzero(counts[column])
            same = same and np.array_equal(listed.get()[column, : nlisted.get()[column]], worlds)
        results["correct"] &= bool(same)
    cells = "; ".join(f"{w} worlds {r['scan']:.2f} / {r['scan+compact']:.2f}" for w, r in results["us"].items())
    header = f"4 scan of {COLUMNS} columns, us: scan / with compaction (equal to NumPy: {results['correct']})"
    return results, [header, "  " + cells]
