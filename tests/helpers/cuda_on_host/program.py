"""Kernels as a GPU gets them, compiled for the host, where the threads of a block are fibers.

CI has no GPU. The source that NVRTC compiles is compiled here by the C++ compiler instead, with headers for CUDA's
language. That runs what the host's own build of a kernel lacks: lanes of a warp, and all that `SIMENGINE_GPU` chooses.

A launch ends with a message where a thread leaves before a collective of its mask, where masks or kinds of collectives
differ, where a shuffle reads a thread beyond the mask, and where threads wait for ever. A missing barrier, and what
nobody has set, change results: of the order in which threads run, and of the bytes that memory begins with.

It does not show how fast a kernel is, nor what NVRTC makes of it. Divisions and roots are exact, which they are not
quite on a GPU, so last digits differ. Blocks run one after another.
"""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from simengine.kernels.cuda_build import BLOCK
from simengine.kernels.cuda_codegen import kernel_source
from simengine.kernels.host_build import NO_CONTRACTION, compiler, cpu_features, defines, native_flags
from simengine.kernels.kernel import Kernel
from simengine.kernels.signatures import parameters, unpacked
from simengine_scheduler.native.cache import cached, digest

HERE = Path(__file__).parent
# Most of the time of a test is that of the compiler and the linker. It is least without optimisation, with C++14's
# <cmath>, and without the library of C++, which no kernel needs.
FLAGS = ("-std=c++14", "-O0", "-shared", "-fPIC", *NO_CONTRACTION, "-fno-strict-aliasing", "-w")
PLAIN = ("-fno-exceptions", "-fno-threadsafe-statics", "-nodefaultlibs")
LIBRARIES = ("-x", "none", "-lm", "-lc")
UNSET = "-ftrivial-auto-var-init=pattern"
"""Has the compiler fill variables that a function does not set, with what is no number that anybody expects."""

INSTRUCTIONS = {
    'asm("" : "+l"(address));': "",
    'asm("" : "+r"(address));': "",
    "unsigned address = __cvta_generic_to_shared": "size_t address = __cvta_generic_to_shared",
    'asm volatile("" : : "l"(rows->row) : "memory");': "",
    'asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));': "y = 1.0f / x;",
    'asm("sqrt.approx.f32 %0, %1;" : "=f"(y) : "f"(x));': "y = sqrtf(x);",
    'asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(inverse) : "d"(y));': "inverse = 1.0 / y;",
    'asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(inverse) : "d"(x));': "inverse = 1.0 / sqrt(x);",
    "extern __shared__ real4_storage shared[];": "auto* shared = reinterpret_cast<real4_storage*>(shared_memory);",
}
"""Text of a GPU's instructions, and of the memory of a block, with what it is on the host."""

Edit = Callable[[str], str]


class GpuFaultError(AssertionError):
    """A kernel that breaks the rules of collectives and barriers."""


class Schedule(NamedTuple):
    """How the threads of a block take turns, and what the memory that they share begins with.

    Attributes:
        order: 0, 1 or 2: threads run from the first to the last, from the last to the first, or at random.
        byte: what every byte of shared memory is before a block begins; 255 makes all real numbers NaN.
    """

    order: int = 0
    byte: int = 255


FIRST_TO_LAST = Schedule()

SCHEDULES = (FIRST_TO_LAST, Schedule(1, 0), Schedule(2, 255))
"""Under these a kernel has the same results."""


def source(text: str, entry: str) -> str:
    """C++ source of CUDA text. `entry` is what a thread does: call a kernel with the arguments in `slots`."""
    for there, here in INSTRUCTIONS.items():
        text = text.replace(there, here)
    headers = "".join((HERE / name).read_text() for name in ("switch.h", "fibers.h", "language.h"))
    launch = (
        "static const unsigned long long* all_slots;\n"
        f"static void run_thread() {{\n  const unsigned long long* slots = all_slots;\n{entry}\n}}\n"
        'extern "C" const char* launch(const unsigned long long* slots, int blocks, int x, int y, int bytes, '
        "int order, int byte) {\n  all_slots = slots;\n"
        "  return run_grid(blocks, x, y, bytes, order, byte, run_thread);\n}\n"
    )
    return "\n".join([headers, text, launch]).replace("#pragma once", "")


def kernel_entry(kernel: Kernel, lanes: int) -> str:
    """C++ statements that call a kernel with the arguments of its launch."""
    names = [p.split()[-1].lstrip("*") for p in parameters(kernel)]
    if lanes > 32 and kernel.unit == "world" and not kernel.in_blocks and not kernel.queued:
        names.append(f"reinterpret_cast<real*>(slots[{len(names) - 1}])")  # scratch in global memory
    return "\n".join([*unpacked(kernel), f"  ::{kernel.name}({', '.join(names)});"])


class Program:
    """A kernel that is compiled for the host as it is for a GPU."""

    def __init__(self, text: str, entry: str, dtype: str, lanes: int) -> None:
        whole = source(text, entry)
        path, version = compiler()
        command = [path, *FLAGS, *PLAIN, UNSET, *native_flags(), *defines(dtype, lanes), f"-DBLOCK={BLOCK}"]
        command += ["-x", "c++", "-", *LIBRARIES]

        def build(target: Path) -> None:
            full = [*command, "-o", str(target)]
            answer = subprocess.run(full, input=whole, capture_output=True, text=True, check=False)
            assert answer.returncode == 0, answer.stderr[:2000]

        built = cached(f"fibers-{digest(whole, version, *command, cpu_features())}.so", build)
        self._launch = ctypes.CDLL(str(built)).launch
        self._launch.restype = ctypes.c_char_p

    def run(self, slots: int, blocks: int, block: tuple[int, int], shared_bytes: int, schedule: Schedule) -> None:
        """Carry out a launch.

        Args:
            slots: address of the arguments, words of eight bytes.
            blocks: number of blocks.
            block: threads of a group, and groups of a block.
            shared_bytes: shared memory of a block.
            schedule: how threads take turns.

        Raises:
            GpuFaultError: the kernel breaks a rule.
        """
        fault = self._launch(ctypes.c_void_p(slots), blocks, *block, shared_bytes, *schedule)
        if fault:
            raise GpuFaultError(fault.decode())


@cache
def program_of(kernel: Kernel, dtype: str, lanes: int, edit: Edit = str) -> Program:
    """The program of a kernel of the engine; `edit` may change its text."""
    return Program(edit(kernel_source(kernel, "cuda")), kernel_entry(kernel, lanes), dtype, lanes)


def run_text(text: str, numbers: np.ndarray, block: tuple[int, int], schedule: Schedule = FIRST_TO_LAST) -> np.ndarray:
    """The numbers that a kernel `kernel(real* numbers)`, given as text, leaves, with a kilobyte of shared memory."""
    program = Program(text, "  kernel(reinterpret_cast<float*>(slots[0]));", "float32", block[0])
    left = numbers.astype(np.float32)
    slots = np.array([left.ctypes.data], np.uint64)
    program.run(int(slots.ctypes.data), 1, block, 1024, schedule)
    return left
