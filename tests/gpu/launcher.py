"""Call kernels directly on the memory of a processor. A `Memory` is copied to it and back.

The copy has guard zones around every buffer, which show whether a kernel writes outside its buffers.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

import numpy as np

from simengine.backends.base import lanes_for
from simengine.kernels import cuda_build
from simengine.kernels.functions import Build
from simengine.kernels.kernel import Kernel
from simengine.plan.every_kernel import all_kernels
from simengine_scheduler import CudaLaunch
from tests.stages.harness import GUARD_BYTES, GUARD_VALUE, Argument, Memory, Pointer, function

ALIGNMENT = 256  # alignment of GPU allocations [bytes]


class Resident:
    """The contents of a `Memory` in one block of a processor's memory.

    Attributes:
        memory: the source of the contents, to which `fetch` copies them back.
        block: the bytes, a NumPy or CuPy array of uint8.
    """

    def __init__(self, memory: Memory, block: Any, address: int):
        self.memory = memory
        self.block = block
        self._address = address
        self._starts = starts(memory)
        for name in memory.arrays:
            self.push(name)

    def push(self, name: str) -> None:
        """Copy a buffer to the processor."""
        self._part(name)[:] = self.upload(self.memory.arrays[name].reshape(-1).view(np.uint8))

    def pull(self, name: str) -> None:
        """Copy a buffer back from the processor."""
        array = self.memory.arrays[name]
        array[...] = self.download(self._part(name)).view(array.dtype).reshape(array.shape)

    def run(self, calls: Iterable[tuple[Kernel, list[Argument]]]) -> None:
        """Carry out calls. Each is made after the one before has run, because it may depend on that one's counts."""
        for kernel, slots in calls:
            self.push("listed")
            self.push("num_listed")
            self.call(kernel, slots)
            if "nefc" in kernel.produced:
                self.pull("nefc")

    def fetch(self) -> None:
        """Copy every buffer back. Raises AssertionError if a kernel wrote outside the buffers."""
        block = self.download(self.block)
        beside = block != GUARD_VALUE
        for name, array in self.memory.arrays.items():
            part = slice(self._starts[name], self._starts[name] + array.nbytes)
            array[...] = block[part].view(array.dtype).reshape(array.shape)
            beside[part] = False
        near = {min(self._starts, key=lambda n: abs(self._starts[n] - at)) for at in np.flatnonzero(beside).tolist()}
        assert not near, f"{beside.sum()} bytes beside the buffers were written, near {sorted(near)}"

    def address(self, place: Pointer) -> int:
        """Address on the processor of a pointer argument."""
        return self._address + self._starts[place.buffer] + place.offset

    def _part(self, name: str) -> Any:
        return self.block[self._starts[name] : self._starts[name] + self.memory.arrays[name].nbytes]

    def upload(self, array: np.ndarray) -> Any:
        """Return a host array in a form that can be assigned to the block."""
        return array

    def download(self, array: Any) -> np.ndarray:
        """A copy of a part of the block on the host."""
        return np.array(array)

    def call(self, kernel: Kernel, slots: list[Argument], worlds_a_block: int = 1) -> None:
        """Carry out one kernel with arguments in launch order."""
        raise NotImplementedError


def starts(memory: Memory) -> dict[str, int]:
    """Offset of each buffer in the block, with guard zones in between. The key "" has the size of the block [bytes]."""
    out, end = {}, 0
    for name, array in memory.arrays.items():
        out[name] = -(-(end + GUARD_BYTES) // ALIGNMENT) * ALIGNMENT
        end = out[name] + array.nbytes + GUARD_BYTES
    return out | {"": end}


class HostResident(Resident):
    """A block of host memory, for kernels with one lane."""

    def __init__(self, memory: Memory):
        nbytes = starts(memory)[""]
        room = np.full(nbytes + ALIGNMENT, GUARD_VALUE, np.uint8)
        block = room[-room.ctypes.data % ALIGNMENT :][:nbytes]
        super().__init__(memory, block, block.ctypes.data)

    def call(self, kernel: Kernel, slots: list[Argument], worlds_a_block: int = 1) -> None:
        """Carry out one kernel. `worlds_a_block` has no meaning on the host."""
        function(kernel.name, self.memory.dtype)(self.packed(slots).ctypes.data)

    def packed(self, slots: list[Argument]) -> np.ndarray:
        """The arguments of a launch as words of eight bytes."""
        words = []
        for slot in slots:
            if isinstance(slot, bytes):
                words.append(slot + bytes(-len(slot) % 8))
            else:
                value = self.address(slot) if isinstance(slot, Pointer) else slot or 0
                words.append(value.to_bytes(8, "little", signed=True))
        return np.frombuffer(b"".join(words), np.uint64)


@cache
def cuda_functions(dtype: str, lanes: int) -> dict[str, Any]:
    """Every kernel of the engine for a number of lanes, compiled in parallel or found in the cache."""
    kernels = all_kernels()
    functions = cuda_build.load_kernels([Build(kernel, lanes) for kernel in kernels], dtype)
    return {kernel.name: function for kernel, function in zip(kernels, functions, strict=True)}


class CudaResident(Resident):
    """A block of GPU memory. Work is ordered on CuPy's current stream."""

    def __init__(self, memory: Memory):
        import cupy

        self._cupy = cupy
        self._lanes = lanes_for(memory.model.nv)
        block = cupy.full(starts(memory)[""], GUARD_VALUE, np.uint8)
        super().__init__(memory, block, int(block.data.ptr))

    def upload(self, array: np.ndarray) -> Any:
        """The array on the GPU."""
        return self._cupy.asarray(array)

    def download(self, array: Any) -> np.ndarray:
        """A copy on the host, made after all work issued before."""
        return self._cupy.asnumpy(array)

    def call(self, kernel: Kernel, slots: list[Argument], worlds_a_block: int = 1) -> None:
        """Launch one kernel with `worlds_a_block` worlds in a block, or fewer if they do not fit."""
        args: list[Any] = [np.uint64(self.address(s)) if isinstance(s, Pointer) else s for s in slots]
        function = cuda_functions(self.memory.dtype, self._lanes)[kernel.name].ptr
        if kernel.unit == "column":
            launch = CudaLaunch(function, (kernel.columns,), (cuda_build.SCAN_LANES,), 0, args)
        else:
            scratch = self._scratch_bytes(slots)
            worlds = min(worlds_a_block, self.most_worlds(slots))
            grid = -(-self.memory.num_worlds // worlds)
            launch = CudaLaunch(function, (grid,), (self._lanes, worlds), worlds * scratch, args)
        launch.issue(self._cupy.cuda.get_current_stream().ptr)

    def most_worlds(self, slots: list[Argument]) -> int:
        """Number of worlds that fit in a block."""
        limit = int(self._cupy.cuda.Device().attributes["MaxSharedMemoryPerBlockOptin"])
        return max(1, min(cuda_build.BLOCK // self._lanes, limit // self._scratch_bytes(slots)))

    def _scratch_bytes(self, slots: list[Argument]) -> int:
        """Shared memory of a world [bytes]: its scratch, whose size is the last argument, and linear algebra words."""
        words = slots[-1]
        assert isinstance(words, int)
        return np.dtype(self.memory.dtype).itemsize * (words + cuda_build.column_words(self._lanes))


def resident(memory: Memory, backend: str) -> Resident:
    """Copy a memory to a backend's processor."""
    return CudaResident(memory) if backend == "cuda" else HostResident(memory)
