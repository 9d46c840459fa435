"""What a result carries so that a stranger can place it: hardware, versions, date."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

PACKAGES = ("simengine", "mujoco", "jax", "numpy", "gymnasium", "cupy-cuda12x", "cupy-cuda13x")


def cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def versions(more: tuple[str, ...] = ()) -> dict[str, str]:
    """Versions of Python and of the packages that decide a result, and `more`; those not installed are left out."""
    found = {"python": platform.python_version()}
    for name in (*PACKAGES, *more):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def hardware() -> dict[str, Any]:
    """CPU, usable cores, memory [GiB], and the GPU if CuPy sees one."""
    found: dict[str, Any] = {"cpu": _cpu_name(), "cores": cores(), "memory_gib": _memory_gib()}
    gpu = _gpu_name()
    if gpu:
        found["gpu"] = gpu
    return found


def result_header(command: str, packages: tuple[str, ...] = ()) -> dict[str, Any]:
    """The part of a result file that is the same for every benchmark.

    Args:
        command: the command line that produces the result, as a reader would type it.
        packages: whose versions matter beside those that always do.
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
    except Exception:  # no CuPy, no driver and no device are all "no GPU" here
        return ""
    return properties["name"].decode()
