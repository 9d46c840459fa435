"""The kernels of executor `device` on the current device: linked when a list first needs them, and loaded."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ..cuda.setup import set_up_stream
from ..launch.tasks import DeviceBody
from .linking import Keep, link_worker, management, refuse_whole_blocks
from .workers import Kind, Worker, all_to_run, numbered

_CARVEOUT = 9  # CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, percent


class CudaPrograms:
    """Loaded kernels on the current device: `reset`, `window`, and workers by their bodies.

    Args:
        keep: stores linked workers, see `Options.keep`. With None they are linked in every process.
    """

    def __init__(self, keep: Keep | None) -> None:
        import cupy  # type: ignore[import-untyped]

        device = cupy.cuda.Device()
        self._cupy = cupy
        self.arch = int(device.compute_capability)
        self._keep: Keep = keep if keep is not None else lambda key, make: make()
        self._modules: dict[Any, Any] = {}
        self._workers: dict[Kind, dict[frozenset[DeviceBody], Worker]] = {}
        self._functions: dict[tuple[Kind, tuple[DeviceBody, ...]], int] = {}
        self._set_up = set_up_stream()
        attributes = device.attributes
        self.multiprocessors = int(attributes["MultiProcessorCount"])
        self.registers = int(attributes["MaxRegistersPerMultiprocessor"])
        self.shared = int(attributes["MaxSharedMemoryPerMultiprocessor"])
        self.threads = int(attributes["MaxThreadsPerMultiProcessor"])
        self.blocks = int(attributes.get("MaxBlocksPerMultiprocessor", 32))

    def window(self) -> tuple[int, int]:
        """Return the functions `reset` and `window`."""
        module = self._load("window", lambda: management(self.arch))
        return module.get_function("reset").ptr, self._all_shared(module.get_function("window").ptr)

    def workers_of(self, wanted: dict[Kind, frozenset[DeviceBody]]) -> dict[Kind, Worker]:
        """Return the workers that run given bodies of each class, and maybe bodies of other lists.

        Workers that are missing are linked in parallel. Raises ValueError for bodies that cannot share blocks.
        """
        chosen = {kind: all_to_run(self._workers.get(kind, ()), bodies) for kind, bodies in wanted.items()}
        missing = {
            kind: numbered(bodies) for kind, bodies in chosen.items() if bodies not in self._workers.get(kind, ())
        }
        with ThreadPoolExecutor() as pool:
            codes = pool.map(self._code, missing, missing.values())
            for (kind, ordered), code in zip(missing.items(), codes, strict=True):
                module = self._load((kind, ordered), lambda code=code: code)
                function = self._functions[kind, ordered] = self._all_shared(module.get_function("worker").ptr)
                worker = Worker(ordered, self._registers_of(function))
                self._workers.setdefault(kind, {})[frozenset(ordered)] = worker
        return {kind: self._workers[kind][bodies] for kind, bodies in chosen.items()}

    def _code(self, kind: Kind, bodies: tuple[DeviceBody, ...]) -> bytes:
        """Return the machine code of a worker."""
        threads, registers, _, *form = kind
        refuse_whole_blocks(bodies, threads, self.arch, self._keep)
        return link_worker(bodies, threads, registers, self.arch, self._keep, *form)

    def function(self, kind: Kind, bodies: tuple[DeviceBody, ...]) -> int:
        """Return the kernel of a worker that `workers_of` returned, by its bodies."""
        return self._functions[kind, bodies]

    def _all_shared(self, function: int) -> int:
        """Return a function that prefers all memory of a multiprocessor as shared memory.

        The first kernel on a multiprocessor decides how its memory is divided. With less shared memory, blocks of other
        workers might not fit beside it.
        """
        from cupy.cuda import driver

        driver.funcSetAttribute(int(function), _CARVEOUT, 100)
        return int(function)

    def _registers_of(self, function: int) -> int:
        from cupy.cuda import driver

        return int(driver.funcGetAttribute(driver.CU_FUNC_ATTRIBUTE_NUM_REGS, function))

    def _load(self, key: Any, code: Any) -> Any:
        if key not in self._modules:
            module = self._cupy.cuda.function.Module()
            module.load(code())
            self._modules[key] = module
        return self._modules[key]

    def upload(self, array: Any) -> Any:
        """Return a copy on the device that every stream may use."""
        with self._set_up:
            copy = self._cupy.asarray(array)
        self._set_up.synchronize()
        return copy

    def download(self, array: Any) -> Any:
        """Return a copy on the host, once all work that was issued to the device is done."""
        self._cupy.cuda.Device().synchronize()
        return array.get()

    def glance(self, array: Any, at: int) -> int:
        """Return a byte of an array without a wait for kernels that run."""
        return int(self._cupy.asnumpy(array[at : at + 1], stream=self._set_up)[0])

    def pinned(self, count: int) -> Any:
        """Return int32 numbers in host memory that has the same address on the device."""
        import numpy as np

        memory = self._cupy.cuda.alloc_pinned_memory(4 * count)
        view = np.frombuffer(memory, np.int32, count)
        view[...] = 0
        return view
