"""Kernels for the host: compiled by the machine's C++ compiler into shared objects, one per kernel."""

from __future__ import annotations

import ctypes
import os
import platform
import subprocess
from collections.abc import Callable, Iterable
from functools import lru_cache
from pathlib import Path

from simengine.errors import BackendError
from simengine.kernels.functions import Build, together
from simengine.kernels.host_codegen import host_source
from simengine.kernels.kernel import Kernel
from simengine_scheduler.native import compiling
from simengine_scheduler.native.cache import cache_dir, cached, digest

HostFunction = Callable[[object], None]
Runner = Callable[[int, int, int, int], int]
Repeater = Callable[..., int]

# With -ffp-contract=off, GCC still contracts pairs of products that its SLP vectoriser finds, as in a quaternion
# product.
NO_CONTRACTION = ("-ffp-contract=off", "-fno-tree-slp-vectorize")
# C++14 suffices, and its <cmath> compiles in a third of the time of that of C++17.
_FLAGS = ("-std=c++14", "-O3", "-shared", "-fPIC", "-pthread", *NO_CONTRACTION, "-fno-strict-aliasing", "-w")


def compiler() -> tuple[str, str]:
    """The C++ compiler and its version line.

    Raises:
        BackendError: no compiler was found.
    """
    found = compiling.compiler()
    if found is None:
        raise BackendError(
            "the host backend found no C++ compiler (looked for $CXX, g++, clang++, c++); install one, set CXX, or use "
            "backend='jax'"
        )
    return found


@lru_cache(maxsize=1)
def cpu_features() -> str:
    """The CPU features on which -march=native depends, as text."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return "".join(sorted({line for line in lines if line.startswith(("flags", "Features", "model name"))}))
    except OSError:
        return platform.processor()


def defines(dtype: str, lanes: int) -> list[str]:
    """Preprocessor flags that fix the precision and the lanes of a build."""
    single = dtype == "float32"
    return [f"-DREAL={'float' if single else 'double'}", f"-DREAL_IS_FLOAT={int(single)}", f"-DLANES={lanes}"]


def native_flags() -> list[str]:
    """Compiler options for the instructions of this machine."""
    return ["-march=native"] if platform.machine() in ("x86_64", "AMD64") else ["-mcpu=native"]


def build_kernel(
    kernel: Kernel, dtype: str, lanes: int = 1, extra_flags: tuple[str, ...] = (), own_tables: bool = False
) -> Path:
    """Compile a kernel, or find it in the cache; returns the shared object.

    Args:
        kernel: the kernel.
        dtype: type of real numbers, "float32" or "float64".
        lanes: lanes of a world.
        extra_flags: more options of the compiler.
        own_tables: whether worlds may have model tables of their own. A kernel that is not tiled always allows that.

    Raises:
        BackendError: no compiler was found, or it failed.
    """
    return _built(kernel, host_source(kernel), dtype, lanes, extra_flags, own_tables)


def _built(
    kernel: Kernel, source: str, dtype: str, lanes: int, extra_flags: tuple[str, ...] = (), own_tables: bool = False
) -> Path:
    gathered = ["-DOWN_TABLES"] if own_tables and kernel.tiled_from is not None else []
    return build_library(kernel.name, source, [*defines(dtype, lanes), *gathered, *extra_flags])


def build_library(name: str, source: str, options: list[str]) -> Path:
    """A shared library of some source, compiled, or found in the cache of kernels."""
    path, version = compiler()
    flags = [*_FLAGS, *native_flags(), *os.environ.get("CXXFLAGS", "").split(), *options]
    key = digest(source, path, version, " ".join(flags), cpu_features())

    def build(target: Path) -> None:
        command = [path, *flags, "-x", "c++", "-", "-o", str(target)]
        answer = subprocess.run(command, input=source, capture_output=True, text=True, check=False)
        if answer.returncode:
            first = next((line for line in answer.stderr.splitlines() if "error" in line), answer.stderr[:300])
            raise BackendError(f"{path} could not compile kernel {name}: {first}; try another compiler with CXX=")
        if not (target.is_file() and target.stat().st_size):
            raise BackendError(f"{path} wrote no library for kernel {name}; try another compiler with CXX=")

    return cached(f"{name}-{key}.so", build)


def load_kernels(builds: Iterable[Build], dtype: str, own_tables: bool = False) -> list[HostFunction]:
    """Functions of kernels, each taking a pointer to its argument slots; missing ones are built in parallel.

    The arguments are those of `build_kernel`. A process loads each kernel once from a folder of kernels, with one
    compiler and its flags.
    """
    wanted = list(builds)
    how = (dtype, own_tables, compiler(), os.environ.get("CXXFLAGS", ""), cache_dir())
    missing = [build for build in dict.fromkeys(wanted) if (build, how) not in _LOADED]
    if missing:
        sources = {kernel: host_source(kernel) for kernel in dict.fromkeys(build.kernel for build in missing)}

        def path_of(build: Build) -> Path:
            return _built(build.kernel, sources[build.kernel], dtype, build.lanes, own_tables=own_tables)

        for build, path in together(path_of, missing, lambda build: len(sources[build.kernel])):
            function = getattr(ctypes.CDLL(str(path)), build.kernel.name)
            function.argtypes = [ctypes.c_void_p]
            function.restype = None
            _LOADED[build, how] = function
    return [_LOADED[build, how] for build in wanted]


_LOADED: dict[tuple[Build, tuple[object, ...]], HostFunction] = {}


@lru_cache(maxsize=1)
def load_runner() -> Runner:
    """The function that runs a program: address and number of the ops, the first to run, array that receives counts."""
    function = _program_library().run_program
    function.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p]
    function.restype = ctypes.c_int64
    runner: Runner = function
    return runner


@lru_cache(maxsize=1)
def load_repeater() -> Repeater:
    """The function that repeats a program: the arguments of `load_runner`, then those of `repeat_program`."""
    function = _program_library().repeat_program
    number, address = ctypes.c_int64, ctypes.c_void_p
    function.argtypes = [address, number, number, address, address, number, address, number, address, number]
    function.restype = number
    repeater: Repeater = function
    return repeater


@lru_cache(maxsize=1)
def _program_library() -> ctypes.CDLL:
    source = (Path(__file__).parent / "host_program.h").read_text()
    return ctypes.CDLL(str(build_library("run_program", source, [])))
