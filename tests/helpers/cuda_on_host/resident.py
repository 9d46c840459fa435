"""The memory of `tests.gpu.launcher` for kernels that run as on a GPU."""

from __future__ import annotations

import numpy as np

from simengine.backends.base import lanes_for
from simengine.kernels import cuda_build
from simengine.kernels.kernel import Kernel
from tests.gpu.launcher import HostResident
from tests.helpers.cuda_on_host.backend import FEW_BLOCKS
from tests.helpers.cuda_on_host.program import FIRST_TO_LAST, Edit, Schedule, program_of
from tests.stages.harness import Argument, Memory


class FiberResident(HostResident):
    """A block of host memory, for kernels whose lanes are fibers.

    Attributes:
        schedule: how they take turns.
        edit: changes the text of kernels.
    """

    def __init__(self, memory: Memory, schedule: Schedule = FIRST_TO_LAST, edit: Edit = str) -> None:
        super().__init__(memory)
        self.schedule, self.edit = schedule, edit

    def call(self, kernel: Kernel, slots: list[Argument], worlds_a_block: int = 1, parts: int = 1) -> None:
        """Launch one kernel, with `parts` groups of lanes for each world."""
        lanes = cuda_build.kernel_lanes(kernel, lanes_for(self.memory.model.nv))
        program = program_of(kernel, self.memory.dtype, lanes, self.edit)
        if kernel.unit == "column":
            packed = self.packed(slots)
            program.run(int(packed.ctypes.data), kernel.columns, (lanes, 1), 0, self.schedule)
            return
        words = slots[-1]
        assert isinstance(words, int)
        words += cuda_build.column_words(lanes, kernel.solver_warps)
        bytes_of_world = words * np.dtype(self.memory.dtype).itemsize
        worlds = max(1, min(worlds_a_block, cuda_build.BLOCK // lanes))
        blocks = -(-self.memory.num_worlds * parts // worlds)
        blocks = min(blocks, FEW_BLOCKS) if kernel.goes_on else blocks
        far = np.full(blocks * worlds * bytes_of_world if lanes > 32 else 1, self.schedule.byte, np.uint8)
        packed = self.packed([*slots, int(far.ctypes.data)])
        program.run(int(packed.ctypes.data), blocks, (lanes, worlds), worlds * bytes_of_world, self.schedule)
