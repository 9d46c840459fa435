"""Kernels for CUDA: compiled by NVRTC to machine code, cached, and loaded through the driver.

Compilation needs no GPU, so a machine without one can check every kernel for each architecture.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from simengine.errors import BackendError
from simengine.kernels.cuda_codegen import kernel_source, task_name
from simengine.kernels.functions import Build, together
from simengine.kernels.host_build import defines
from simengine.kernels.kernel import Kernel
from simengine.kernels.step_codegen import step_source
from simengine.kernels.step_kernel import StepKernel
from simengine_scheduler.device import compile_body
from simengine_scheduler.launch import DeviceBody
from simengine_scheduler.native.cache import cache_dir, cached, digest

BLOCK = 128  # threads per block of a kernel whose unit is a world
_WARP = 32
SCAN_LANES = 1024  # threads per block of the scan
SLICE_LANES = 32  # lanes of a slice of pairs, one pair per lane
WIDE_LANES = 256  # threads per block whose unit is a large world
ISLAND_LANES = (128, 512)  # threads per block whose unit is a large or a huge island


def _nvrtc() -> Any:
    try:
        from cupy.cuda import nvrtc  # type: ignore[import-untyped]
    except ImportError as error:
        raise BackendError(
            "the cuda backend needs CuPy; install simengine[cuda13] or simengine[cuda12], or use backend='host'"
        ) from error
    return nvrtc


def more_options() -> list[str]:
    """Options of NVRTC in $NVRTCFLAGS, as `-lineinfo`, with which profilers show lines of the sources.

    The line numbers take two thirds of a file with machine code, and a tenth of its compilation.
    """
    return os.environ.get("NVRTCFLAGS", "").split()


def cuda_source(kernel: Kernel) -> str:
    """Complete CUDA source of a kernel."""
    return step_source(kernel) if isinstance(kernel, StepKernel) else kernel_source(kernel, "cuda")


def compile_cubin(kernel: Kernel, dtype: str, lanes: int, arch: int, extra_options: tuple[str, ...] = ()) -> bytes:
    """Machine code of a kernel for an architecture such as 90; `extra_options` go to NVRTC.

    Raises:
        BackendError: no CuPy or NVRTC, or the compilation failed.
    """
    return bytes(_compile(kernel, dtype, lanes, f"sm_{arch}", extra_options, "getCUBIN"))


def compile_ptx(kernel: Kernel, dtype: str, lanes: int, arch: int, extra_options: tuple[str, ...] = ()) -> str:
    """What `compile_cubin` gives to the assembler, which takes most of its time.

    Raises:
        BackendError: as `compile_cubin`, also for a function without a body, which the assembler would find.
    """
    ptx = _compile(kernel, dtype, lanes, f"compute_{arch}", extra_options, "getPTX")
    text: str = ptx.decode() if isinstance(ptx, bytes) else ptx
    missing = re.search(r"^\.extern \.func .*?(\w+)$", text, re.MULTILINE)
    if missing:
        raise BackendError(f"kernel {kernel.name} for sm_{arch} calls {missing[1]}, which has no body")
    return text


def _compile(kernel: Kernel, dtype: str, lanes: int, target: str, extra_options: tuple[str, ...], result: str) -> Any:
    nvrtc = _nvrtc()
    options = [
        f"--gpu-architecture={target}",
        "--std=c++17",
        "--fmad=false",
        *defines(dtype, lanes),
        f"-DBLOCK={BLOCK}",
        *more_options(),
        *extra_options,
    ]
    program = nvrtc.createProgram(cuda_source(kernel), f"{kernel.name}.cu", (), ())
    try:
        nvrtc.compileProgram(program, options)
        return getattr(nvrtc, result)(program)
    except nvrtc.NVRTCError as error:
        log = nvrtc.getProgramLog(program)
        first = next((line for line in log.splitlines() if "error" in line), str(error))
        raise BackendError(f"NVRTC could not compile kernel {kernel.name} for {target}: {first}") from error
    finally:
        nvrtc.destroyProgram(program)


def build_kernel(kernel: Kernel, dtype: str, lanes: int, arch: int) -> Path:
    """Compile a kernel, or find it in the cache; returns the file with its machine code."""
    return _built(kernel, cuda_source(kernel), dtype, lanes, arch)


def _built(kernel: Kernel, source: str, dtype: str, lanes: int, arch: int) -> Path:
    key = digest(source, str(_nvrtc().getVersion()), dtype, str(lanes), str(arch), str(BLOCK), *more_options())
    return cached(f"{kernel.name}-{key}.cubin", lambda path: _write(path, compile_cubin(kernel, dtype, lanes, arch)))


def _write(path: Path, data: bytes) -> None:
    path.write_bytes(data)


def column_words(lanes: int, solver_warps: int = 0) -> int:
    """Words of shared memory that linear algebra needs for each group of lanes: COLUMN_WORDS of dialect.cuh."""
    return 4 * min(lanes, _WARP) if lanes <= _WARP or solver_warps else 4


def kernel_lanes(kernel: Kernel, lanes: int) -> int:
    """Lanes of a kernel whose model asks for `lanes`: scans, slices and wide kernels have their own."""
    wide = kernel.own_lanes or (max(lanes, ISLAND_LANES[0]) if kernel.block_per_unit else lanes)
    return {"column": SCAN_LANES, "slice": SLICE_LANES}.get(kernel.unit, wide)


_SCAN_REGISTERS = 96
_TASK_SCAN_LANES = 128  # threads of a worker that scans: with larger blocks, fewer other workers would be resident
_TASK_REGISTERS = 168  # registers per thread of other workers: with fewer, code with all bodies spills to local memory


def task_lanes(kernel: Kernel, lanes: int) -> int:
    """Lanes of a kernel's body for workers of the executor `device`."""
    return _TASK_SCAN_LANES if kernel.unit == "column" else kernel_lanes(kernel, lanes)


def compile_task(kernel: Kernel, dtype: str, own: int, arch: int) -> bytes:
    """Intermediate code for the linker of a kernel's body for workers. Raises BackendError if it cannot be compiled."""
    name = task_name(kernel, dtype, own)
    options = [*defines(dtype, own), f"-DBLOCK={BLOCK}", f"-DTASK_NAME={name}"]
    try:
        return compile_body(kernel_source(kernel, "task"), name, arch, options)
    except RuntimeError as error:
        raise BackendError(str(error)) from error


def device_body(kernel: Kernel, dtype: str, lanes: int, arch: int) -> DeviceBody:
    """The body of a kernel for workers of the executor `device`; compiled, or read from the cache, when linked."""
    return _device_body(kernel, dtype, task_lanes(kernel, lanes), arch)


@cache
def _device_body(kernel: Kernel, dtype: str, own: int, arch: int) -> DeviceBody:
    registers = _SCAN_REGISTERS if kernel.unit == "column" else _TASK_REGISTERS

    def code() -> bytes:
        version = str(_nvrtc().getVersion())
        key = digest(kernel_source(kernel, "task"), version, dtype, str(own), str(arch), str(BLOCK))
        made = cached(f"{kernel.name}-{key}.task", lambda path: _write(path, compile_task(kernel, dtype, own, arch)))
        return made.read_bytes()

    return DeviceBody(task_name(kernel, dtype, own), code, max(32, own), registers, f"{own} {dtype}")


def keep_worker(key: str, make: Callable[[], bytes]) -> bytes:
    """Linked workers of the executor `device`, from the cache of kernels or built by `make`."""
    return cached(key, lambda path: _write(path, make())).read_bytes()


@dataclass(frozen=True)
class CudaFunction:
    """A loaded kernel: its handle, the module that holds it, and its body for workers, if it can have one."""

    ptr: int
    function: Any
    body: DeviceBody | None


def load_kernels(builds: Iterable[Build], dtype: str) -> list[CudaFunction]:
    """CUDA functions of kernels, for the current device; missing ones are built in parallel.

    A process loads each kernel once on a device from a folder of kernels.
    """
    import cupy

    device = cupy.cuda.Device()
    arch, how = int(device.compute_capability), (dtype, int(device.id), cache_dir(), *more_options())
    wanted = [Build(kernel, kernel_lanes(kernel, lanes)) for kernel, lanes in builds]
    missing = [build for build in dict.fromkeys(wanted) if (build, how) not in _LOADED]
    sources = {kernel: cuda_source(kernel) for kernel in dict.fromkeys(build.kernel for build in missing)}

    def path_of(build: Build) -> Path:
        return _built(build.kernel, sources[build.kernel], dtype, build.lanes, arch)

    for build, path in together(path_of, missing, lambda build: len(sources[build.kernel])):
        module = cupy.cuda.function.Module()
        module.load(path.read_bytes())
        function = module.get_function(build.kernel.name)
        body = None if isinstance(build.kernel, StepKernel) else device_body(build.kernel, dtype, build.lanes, arch)
        _LOADED[build, how] = CudaFunction(function.ptr, function, body)
    return [_LOADED[build, how] for build in wanted]


_LOADED: dict[tuple[Build, tuple[object, ...]], CudaFunction] = {}
