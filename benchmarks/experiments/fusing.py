"""Experiment 3: kinematics, composite inertia, and mass-matrix factor as three kernels against one fused kernel."""

from __future__ import annotations

from typing import Any

import cupy as cp
import numpy as np

from . import ant_tree
from .harness import MULTIPROCESSORS, Launch, Source, block_threads, blocks, device_us, poison
from .kinematics_layout import TABLES, Fields

KINEMATICS, COMPOSITE, FACTOR = 1, 2, 4
XPOS, XQUAT, XMAT, CRB, CDOF, QM = 1, 2, 4, 8, 16, 32
SPLIT = ((KINEMATICS, XPOS | XQUAT | XMAT), (COMPOSITE, CRB | CDOF), (FACTOR, QM))
FUSED_ALL = (KINEMATICS | COMPOSITE | FACTOR, 63)
FUSED_STEP = (KINEMATICS | COMPOSITE | FACTOR, QM)
LANES = (4, 8, 16, 32)
FLOATS = {XPOS: 42, XQUAT: 56, XMAT: 126, CRB: 140, CDOF: 84, QM: ant_tree.NV * (ant_tree.NV + 1)}
USED = {KINEMATICS: XPOS | XQUAT | XMAT, COMPOSITE: XPOS | XMAT | CRB | CDOF, FACTOR: CRB | CDOF | QM}


def _name(lanes: int, stages: int, store: int) -> str:
    return f"stages<{lanes}, {stages}, {store}>"


SOURCE = Source(
    ("tree.cu", "stages.cu"),
    tuple(_name(lanes, *s) for lanes in LANES for s in (*SPLIT, FUSED_ALL, FUSED_STEP)),
    TABLES.defines,
)


def shared_floats(stages: int) -> int:
    """Floats of shared memory a world that these stages use (an odd number, to spread worlds over the banks)."""
    used = 0
    for stage, fields in USED.items():
        used |= fields if stages & stage else 0
    return sum(n for f, n in FLOATS.items() if used & f) | 1


class StageFields(Fields):
    """The kinematics fields and those of the two further stages."""

    def __init__(self, num_worlds: int) -> None:
        super().__init__(num_worlds)
        self.crb, self.cdof, self.qM = (cp.zeros(num_worlds * FLOATS[f], dtype=cp.float32) for f in (CRB, CDOF, QM))

    def launch(self, functions: dict[str, int], lanes: int, stages: int, store: int) -> Launch:
        """One kernel of these stages that stores these fields."""
        threads = self.num_worlds * lanes
        largest = min(128, 16 * lanes)  # 16 worlds a block at most: under 48 KiB of shared memory
        block = min(largest, 32 if threads <= MULTIPROCESSORS * 4 * 32 else block_threads(threads, largest))
        outputs = (self.xpos, self.xquat, self.xmat, self.crb, self.cdof, self.qM)
        arguments = [self.qpos, *outputs, self.integers, self.floats, self.num_worlds]
        shared = 4 * shared_floats(stages) * (block // lanes)
        return Launch(functions[_name(lanes, stages, store)], blocks(threads, block), block, arguments, shared)


def _largest_factor_entry(fields: StageFields) -> float:
    """max |L| over all worlds, or inf if an entry is not finite or a diagonal entry not positive."""
    factor = fields.qM.get().reshape(-1, ant_tree.NV, ant_tree.NV + 1)[:, :, : ant_tree.NV]
    diagonal = np.diagonal(factor, axis1=1, axis2=2)
    good = bool(np.isfinite(factor).all()) and bool((diagonal > 0).all())
    return float(np.abs(factor).max()) if good else float("inf")


def run(worlds: tuple[int, ...] = (64, 512, 8192, 32768)) -> tuple[dict[str, Any], list[str]]:
    """Measure split and fused forms; returns the results and the summary's lines."""
    functions = SOURCE.load()
    results: dict[str, Any] = {"us": {}, "same_bits": True, "largest_factor_entry": 0.0}
    for num_worlds in worlds:
        fields, factors = StageFields(num_worlds), []
        row: dict[int, dict[str, Any]] = {}
        for lanes in LANES:
            split = [fields.launch(functions, lanes, *s) for s in SPLIT]
            forms = {"split": split, "fused_all": [fields.launch(functions, lanes, *FUSED_ALL)],
                     "fused_step": [fields.launch(functions, lanes, *FUSED_STEP)]}  # fmt: skip
            parts = [device_us([launch]) for launch in split]
            row[lanes] = {"parts": parts}
            for form, launches in forms.items():
                poison(fields.qM)
                row[lanes][form] = device_us(launches)
                factors.append(fields.qM.get())
        results["us"][num_worlds] = row
        results["same_bits"] &= all(np.array_equal(f, factors[0]) for f in factors[1:])
        results["largest_factor_entry"] = max(results["largest_factor_entry"], _largest_factor_entry(fields))
    lines = [f"3 kinematics+inertia+factor, us: three kernels / fused storing all / fused storing qM "
             f"(same bits: {results['same_bits']}, max |L| {results['largest_factor_entry']:.2f})",
             "worlds " + " ".join(f"{f'{n} lanes':>23}" for n in LANES)]  # fmt: skip
    for num_worlds, row in results["us"].items():
        cells = [f"{c['split']:7.2f}/{c['fused_all']:7.2f}/{c['fused_step']:7.2f}" for c in row.values()]
        lines.append(f"{num_worlds:6d} " + " ".join(cells))
    parts = results["us"][worlds[-1]]
    lines.append(f"  parts at {worlds[-1]}: " + "; ".join(
        f"{n} lanes " + " + ".join(f"{t:.2f}" for t in row["parts"]) for n, row in parts.items()))  # fmt: skip
    return results, lines
