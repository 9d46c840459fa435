"""Environment keys of committed hashes. A key names all that bits depend on beside the code.

A machine compares its hashes only with those that were recorded under its own key.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from pathlib import Path

import mujoco


def key(backend: str, dtype: str) -> str:
    """Environment key of this machine, e.g. "host, g++ 12.2.0, glibc 2.36, x86_64 avx512f, MuJoCo 4.0.0, float32".

    MuJoCo, the C library and the CPU decide the bits of a compiled model, on either backend.
    """
    tool = cuda_compiler() if backend == "cuda" else cxx_compiler()
    return ", ".join((backend, tool, c_library(), cpu_class(), f"MuJoCo {mujoco.__version__}", dtype))


def cxx_compiler() -> str:
    """The C++ compiler of the host backend, and its version."""
    candidates = (os.environ.get("CXX"), "g++", "clang++", "c++")
    path = next((found for name in candidates if name and (found := shutil.which(name))), None)
    if path is None:
        return "no compiler"
    lines = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout.splitlines()
    return compiler_name(lines[0] if lines else path)


def compiler_name(line: str) -> str:
    """Name and version of a compiler from the first line of its `--version`, without the distribution's own."""
    name = "clang++" if "clang" in line else "g++"
    numbers = re.findall(r"\b\d+\.\d+(?:\.\d+)?\b", re.sub(r"\(.*?\)", "", line))
    return f"{name} {numbers[0] if numbers else 'of unknown version'}"


def cuda_compiler() -> str:
    """The architecture of the GPU and the version of NVRTC."""
    import cupy
    from cupy.cuda import nvrtc

    return f"sm_{cupy.cuda.Device().compute_capability}, NVRTC {'.'.join(map(str, nvrtc.getVersion()))}"


def c_library() -> str:
    """The C library, whose mathematical functions the host kernels and MuJoCo call, and its version."""
    name, version = platform.libc_ver()
    return f"{name} {version}" if name else f"{platform.system()} {platform.release()}"


def cpu_class() -> str:
    """Architecture, and the widest vector instructions, by which libraries choose among their functions."""
    try:
        return class_of(platform.machine(), Path("/proc/cpuinfo").read_text())
    except OSError:
        return platform.machine()


def class_of(machine: str, cpuinfo: str) -> str:
    """The class of a CPU, from its architecture and its first core's entry in /proc/cpuinfo."""
    if machine not in ("x86_64", "AMD64"):
        return machine
    line = re.search(r"^flags\s*:(.*)$", cpuinfo, re.MULTILINE)
    flags = set(line.group(1).split()) if line else set()
    return f"{machine} {'avx512f' if 'avx512f' in flags else 'avx2+fma' if {'avx2', 'fma'} <= flags else 'other'}"
