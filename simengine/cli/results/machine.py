"""The header of a result file, which says where it comes from: hardware, versions, date, command."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from simengine_scheduler.executors.processors import usable_processors

PACKAGES = ("simengine", "mujoco", "jax", "numpy", "gymnasium", "cupy-cuda12x", "cupy-cuda13x")


def versions(more: tuple[str, ...] = ()) -> dict[str, str]:
    """Return versions of Python, of the packages that affect results, and of `more`. Missing packages are left out."""
    found = {"python": platform.python_version()}
    for name in (*PACKAGES, *more):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def hardware() -> dict[str, Any]:
    """Return the CPU, the usable cores, the memory [GiB], and the GPU if CuPy finds one."""
    found: dict[str, Any] = {"cpu": _cpu_name(), "cores": usable_processors(), "memory_gib": _memory_gib()}
    gpu = _gpu_name()
    if gpu:
        found["gpu"] = gpu
    return found


def result_header(command: str, packages: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the part of a result file that all benchmarks share.

    Args:
        command: the command line that produces the result, as a reader would type it.
        packages: further packages whose versions affect the result.
    """
    today = datetime.now(UTC).date().isoformat()
    return {"hardware": hardware(), "versions": versions(packages), "date": today, "command": command}


def _cpu_name() -> str:
    listing = Path("/proc/cpuinfo")
    if listing.is_file():
        for line in listing.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _memory_gib() -> float:
    if "SC_PHYS_PAGES" not in os.sysconf_names:
        return 0.0
    return round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30, 1)


def _gpu_name() -> str:
    try:
        from cupy.cuda import runtime

        properties = runtime.getDeviceProperties(runtime.getDevice())
    except Exception:  # a missing CuPy, driver or device means that there is no GPU
        return ""
    return properties["name"].decode()
