"""Programs for workers on a GPU: bodies compiled by NVRTC one by one, linked by nvJitLink to a worker of each class.

Compiling and linking need no GPU. A body is compiled once for an architecture; linking takes some milliseconds, so a
list with other bodies compiles nothing anew but a few lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from .body import DeviceBody

_HERE = Path(__file__).parent
_OPTIONS = ("--std=c++17", "--fmad=false", "-lineinfo", f"-I{_HERE}")
_SIGNATURE = 'extern "C" __device__ void {}(const unsigned long long*, int, char*);'


def compile_body(source: str, name: str, arch: int, registers: int = 128, options: Sequence[str] = ()) -> bytes:
    """Relocatable machine code of a source with the device function `name`, for `DeviceBody.code`.

    Args:
        source: CUDA C++ text.
        arch: architecture such as 90.
        registers: most registers a thread.
        options: further options of NVRTC.

    Raises:
        RuntimeError: no NVRTC, or it refused the source.
    """
    limit = (f"--maxrregcount={registers}",) if registers < 255 else ()
    return _compile(source, f"{name}.cu", arch, ("--relocatable-device-code=true", *limit, *options))


def _compile(source: str, name: str, arch: int, options: Sequence[str]) -> bytes:
    try:
        from cupy.cuda import nvrtc  # type: ignore[import-untyped]
    except ImportError as error:
        raise RuntimeError(
            f"bodies for the device are compiled through CuPy, which cannot be imported ({error}); install "
            f"cupy-cuda12x or cupy-cuda13x, or choose another executor"
        ) from error
    program = nvrtc.createProgram(source, name, (), ())
    try:
        nvrtc.compileProgram(program, [f"--gpu-architecture=sm_{arch}", *_OPTIONS, *options])
        code = bytes(nvrtc.getCUBIN(program))
    except nvrtc.NVRTCError as error:
        log = nvrtc.getProgramLog(program)
        first = next((line for line in log.splitlines() if "error" in line), str(error))
        raise RuntimeError(f"NVRTC could not compile {name} for sm_{arch}: {first}") from error
    finally:
        nvrtc.destroyProgram(program)
    # CuPy takes the last byte for the end of a string; the linker misses it
    return code + bytes(-len(code) % 8)


def code_of(body: DeviceBody) -> bytes:
    """Machine code of a body, made now if it was not yet."""
    return body.code() if callable(body.code) else body.code


@cache
def management(arch: int) -> bytes:
    """Machine code of `reset` and `window`."""
    return _compile((_HERE / "worker.cu").read_text(), "window.cu", arch, ())


def worker_source(names: Sequence[str], threads: int) -> str:
    """Source of the worker that runs bodies of these names, by their numbers."""
    cases = [f"    case {i}: {name}(arguments, tile, memory); break;" for i, name in enumerate(names)]
    return "\n".join(
        [
            f"#define THREADS {threads}",
            *(_SIGNATURE.format(name) for name in names),
            "static __device__ __forceinline__ void run_body(",
            "    int body, const unsigned long long* arguments, int tile, char* memory) {",
            "  switch (body) {",
            *cases,
            "  }",
            "}",
            "#define RUN_BODY run_body",
            (_HERE / "worker.cu").read_text(),
        ]
    )


def link_worker(bodies: Sequence[DeviceBody], threads: int, arch: int) -> bytes:
    """Machine code of a worker with its bodies.

    Raises:
        RuntimeError: no nvJitLink, or a body is missing, or stands there twice.
    """
    try:
        from cuda.bindings import nvjitlink  # type: ignore[import-not-found, unused-ignore]
    except ImportError as error:
        raise RuntimeError(
            f"executor 'device' links its workers by nvJitLink, which cannot be imported ({error}); install "
            f"simengine[cuda13] or simengine[cuda12], or choose executor 'graph-cached'"
        ) from error
    source = worker_source([body.name for body in bodies], threads)
    own = _compile(source, "worker.cu", arch, ("--relocatable-device-code=true",))
    linker = nvjitlink.create(1, [f"-arch=sm_{arch}"])
    try:
        for name, code in [("worker", own), *((body.name, code_of(body)) for body in bodies)]:
            nvjitlink.add_data(linker, nvjitlink.InputType.CUBIN, code, len(code), name)
        nvjitlink.complete(linker)
        linked = bytearray(nvjitlink.get_linked_cubin_size(linker))
        nvjitlink.get_linked_cubin(linker, linked)
    except nvjitlink.nvJitLinkError as error:
        log = bytearray(nvjitlink.get_error_log_size(linker))
        nvjitlink.get_error_log(linker, log)
        why = log.decode(errors="replace").strip("\0 \n").splitlines()
        raise RuntimeError(f"nvJitLink could not link a worker of {len(bodies)} bodies: {why[:1] or error}") from error
    finally:
        nvjitlink.destroy(linker)
    return bytes(linked)


class CudaPrograms:
    """Loaded kernels for the current device: `reset` and `window`, and workers by their bodies."""

    def __init__(self) -> None:
        import cupy  # type: ignore[import-untyped]

        device = cupy.cuda.Device()
        self._cupy = cupy
        self.arch = int(device.compute_capability)
        self._modules: dict[Any, Any] = {}
        self._set_up = cupy.cuda.Stream(non_blocking=True)
        attributes = device.attributes
        self.multiprocessors = int(attributes["MultiProcessorCount"])
        self.registers = int(attributes["MaxRegistersPerMultiprocessor"])
        self.shared = int(attributes["MaxSharedMemoryPerMultiprocessor"])
        self.threads = int(attributes["MaxThreadsPerMultiProcessor"])
        self.blocks = int(attributes.get("MaxBlocksPerMultiprocessor", 32))

    def window(self) -> tuple[int, int]:
        """The functions `reset` and `window`."""
        module = self._load("window", lambda: management(self.arch))
        return module.get_function("reset").ptr, module.get_function("window").ptr

    def worker(self, bodies: tuple[DeviceBody, ...], threads: int) -> int:
        """The worker that runs these bodies, by their numbers."""
        module = self._load(bodies, lambda: link_worker(bodies, threads, self.arch))
        return int(module.get_function("worker").ptr)

    def registers_of(self, bodies: tuple[DeviceBody, ...], threads: int) -> int:
        """Registers a thread that their worker takes."""
        from cupy.cuda import driver

        return int(driver.funcGetAttribute(driver.CU_FUNC_ATTRIBUTE_NUM_REGS, self.worker(bodies, threads)))

    def _load(self, key: Any, code: Any) -> Any:
        if key not in self._modules:
            module = self._cupy.cuda.function.Module()
            module.load(code())
            self._modules[key] = module
        return self._modules[key]

    def upload(self, array: Any) -> Any:
        """A copy on the device, ready for every stream."""
        with self._set_up:
            copy = self._cupy.asarray(array)
        self._set_up.synchronize()
        return copy

    def download(self, array: Any) -> Any:
        """A copy on the host, once all work of the device is done that was issued before."""
        self._cupy.cuda.Device().synchronize()
        return array.get()

    def pinned(self, count: int) -> Any:
        """Host memory of int32 at the same address on the device."""
        import numpy as np

        memory = self._cupy.cuda.alloc_pinned_memory(4 * count)
        view = np.frombuffer(memory, np.int32, count)
        view[...] = 0
        return view
