"""Run the experiments and print a summary: ``python -m benchmarks.experiments --json results.json``.

``--check`` only compiles every kernel (no GPU needed).
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
import traceback
from pathlib import Path
from typing import Any

import cupy as cp

from . import fusing, issue, kinematics_layout, newton, readback, scan, shards

EXPERIMENTS = {
    "readback": readback.run,
    "layout": kinematics_layout.run,
    "fusing": fusing.run,
    "scan": scan.run,
    "newton": newton.run,
    "shards": shards.run,
    "issue": issue.run,
}
SOURCES = (readback.SOURCE, kinematics_layout.SOURCE, fusing.SOURCE, scan.SOURCE, newton.SOURCE)


def check(archs: tuple[str, ...] = ("80", "90", "100")) -> None:
    """Compile every kernel for each architecture; raises RuntimeError with the compiler's log."""
    for source in SOURCES:
        for arch in archs:
            start = time.perf_counter()
            cubin, names = source.compile(arch)
            print(f"sm_{arch} {source.files[-1]}: {len(names)} kernels, {len(cubin)} bytes, "
                  f"{time.perf_counter() - start:.1f} s")  # fmt: skip


def machine() -> dict[str, Any]:
    """The hardware and versions that the numbers belong to."""
    properties = cp.cuda.runtime.getDeviceProperties(0)
    return {
        "gpu": properties["name"].decode(),
        "multiprocessors": properties["multiProcessorCount"],
        "l2_bytes": properties["l2CacheSize"],
        "driver": cp.cuda.runtime.driverGetVersion(),
        "runtime": cp.cuda.runtime.runtimeGetVersion(),
        "nvrtc": list(cp.cuda.nvrtc.getVersion()),
        "cupy": cp.__version__,
        "python": platform.python_version(),
        "date": time.strftime("%Y-%m-%d"),
    }


def warm_up(seconds: float = 1.0) -> None:
    """Keep the GPU busy, so that its clocks have risen before anything is timed."""
    functions, fields = kinematics_layout.SOURCE.load(), kinematics_layout.Fields(32768)
    launch = kinematics_layout.world_major(functions, fields, 32, repeats=20)
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        launch(0)
        cp.cuda.runtime.deviceSynchronize()


def run_all(names: list[str]) -> tuple[dict[str, Any], list[str]]:
    """Run the named experiments; one that fails is reported with its traceback and the rest go on."""
    report: dict[str, Any] = {}
    summary: list[str] = []
    for name in names:
        start = time.perf_counter()
        try:
            report[name], lines = EXPERIMENTS[name]()
            summary += lines
        except Exception:
            report[name] = {"failed": traceback.format_exc()}
            print(report[name]["failed"], flush=True)
            summary.append(f"{name}: FAILED, see the traceback above")
        report[name]["seconds"] = time.perf_counter() - start
        print(f"{name}: {report[name]['seconds']:.1f} s", flush=True)
    return report, summary


def main() -> int:
    """Entry point; returns 1 if an experiment failed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.experiments", description=__doc__)
    parser.add_argument("--json", type=Path, help="file for all results")
    parser.add_argument("--only", nargs="+", choices=list(EXPERIMENTS), default=list(EXPERIMENTS))
    parser.add_argument("--check", action="store_true", help="compile the kernels and stop; needs no GPU")
    arguments = parser.parse_args()
    if arguments.check:
        check()
        return 0
    where = machine()
    try:
        warm_up()
    except Exception:
        traceback.print_exc()
    report, summary = run_all(arguments.only)
    print("\n" + ", ".join(f"{k} {v}" for k, v in where.items()))
    print("\n".join(summary))
    if arguments.json:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(json.dumps({"machine": where, **report}, indent=1, default=str))
    return 1 if any("failed" in r for r in report.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
