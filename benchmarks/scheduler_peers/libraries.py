"""Builds the peers with `nvcc` from folders with their sources, which this project does not have, and loads them."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from benchmarks.scheduler_peers.recording import Program

_HERE = Path(__file__).parent
_NVCC = ("nvcc", "-std=c++20", "-O2", "-Xcompiler", "-fPIC", "-shared", "--extended-lambda", "--expt-relaxed-constexpr")
_CCCL = ("cudax/include", "libcudacxx/include", "cub", "thrust", "c/experimental/stf/include")

SYSTEMS = {
    "stream": ("plain", "stream_replay"),
    "graph": ("plain", "graph_replay"),
    "taskflow": ("taskflow", "taskflow_replay"),
    "cudastf": ("cudastf", "cudastf_stream_replay"),
    "cudastf-graph": ("cudastf", "cudastf_graph_replay"),
}
"""By name: the library that has it, and its function."""


class System(NamedTuple):
    """A way of issuing recorded calls.

    Attributes:
        replay: issues the calls of steps `first` to `last - 1`. Raises RuntimeError if it fails.
    """

    name: str
    replay: Callable[[Program, int, int], None]


def build(library: str, folder: Path, taskflow: Path | None, cccl: Path | None) -> Path | None:
    """Build a library into a folder unless it is there. Returns None without the sources of its peer."""
    made = folder / f"lib{library}_peer.so"
    if made.exists():
        return made
    sources: list[str | Path] = [_HERE / "plain.cpp"]
    includes: list[Path] = []
    if library == "taskflow":
        if taskflow is None:
            return None
        sources, includes = [_HERE / "taskflow.cu"], [taskflow]
    elif library == "cudastf":
        if cccl is None:
            return None
        sources = [_HERE / "cudastf.cpp", cccl / "c/experimental/stf/src/stf.cu"]
        includes = [cccl / own for own in _CCCL]
    folder.mkdir(parents=True, exist_ok=True)
    flags = [*(f"-I{include}" for include in (_HERE, *includes)), "-DCCCL_C_EXPERIMENTAL=1"]
    subprocess.run([*_NVCC, *flags, *map(str, sources), "-o", str(made)], check=True)
    return made


def systems(names: list[str], folder: Path, taskflow: Path | None, cccl: Path | None) -> list[System]:
    """Return the systems of these names that can be had here."""
    ctypes.CDLL("libcuda.so.1", mode=ctypes.RTLD_GLOBAL)
    found = []
    for name in names:
        library, function = SYSTEMS[name]
        path = build(library, folder, taskflow, cccl)
        if path is not None:
            found.append(System(name, _replay(name, getattr(ctypes.CDLL(str(path)), function))))
    return found


def _replay(name: str, function: Callable[..., bytes | None]) -> Callable[[Program, int, int], None]:
    function.argtypes = [ctypes.POINTER(Program), ctypes.c_int, ctypes.c_int]  # type: ignore[attr-defined]
    function.restype = ctypes.c_char_p  # type: ignore[attr-defined]

    def replay(program: Program, first: int, last: int) -> None:
        failed = function(ctypes.byref(program), first, last)
        if failed:
            raise RuntimeError(f"{name} could not issue the calls: {failed.decode()}")

    return replay


def runtime_kernels(folder: Path) -> Callable[[bytes, str, int], int]:
    """Return the function that loads a kernel for the CUDA runtime, which Taskflow asks for."""
    function = ctypes.CDLL(str(folder / "libtaskflow_peer.so")).taskflow_kernel
    function.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_int]
    function.restype = ctypes.c_void_p

    def load(code: bytes, name: str, shared: int) -> int:
        kernel = function(code, name.encode(), shared)
        if not kernel:
            raise RuntimeError(f"the CUDA runtime could not load kernel {name}")
        return int(kernel)

    return load
