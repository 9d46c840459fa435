"""Kernels under a sanitizer: a program that contains all kernels and carries out calls from a file.

Python cannot reliably load a shared object that was built with a sanitizer. The calls are therefore written to a file:

    number of buffers; for each its bytes and contents
    number of calls; for each the number of the kernel, its slots, and for each slot a buffer (or -1) and a value

all as 8-byte words. The program gives every buffer an allocation of exactly its size, carries out the calls, and writes
the buffers back.
"""

from __future__ import annotations

import struct
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from simengine.kernels import host_build
from simengine.kernels.host_build import compiler, defines
from simengine.kernels.host_codegen import host_source
from simengine.kernels.kernel import Kernel
from simengine_scheduler.native.cache import cached, digest
from tests.helpers import one_processor
from tests.stages.harness import Argument, Memory, Pointer, call
from tests.stages.harness_chain import Calls
from tests.stages.units import Edit, unit_source

RUNNER = r"""
#include <cstdio>
#include <cstdlib>
#include <vector>
typedef void (*KernelFunction)(const uint64_t*);
static const KernelFunction kernels[] = {KERNELS};

static uint64_t word(FILE* file) {
  uint64_t value = 0;
  if (fread(&value, 8, 1, file) != 1) abort();
  return value;
}

int main(int, char** names) {
  FILE* in = fopen(names[1], "rb");
  std::vector<char*> buffers(word(in));
  std::vector<uint64_t> sizes;
  for (char*& buffer : buffers) {
    sizes.push_back(word(in));
    buffer = new char[sizes.back()];
    if (fread(buffer, 1, sizes.back(), in) != sizes.back()) abort();
  }
  for (uint64_t calls = word(in); calls; --calls) {
    const uint64_t kernel = word(in);
    std::vector<uint64_t> slots(word(in));
    for (uint64_t& slot : slots) {
      const int64_t buffer = word(in);
      slot = word(in);
      if (buffer >= 0) slot += reinterpret_cast<uintptr_t>(buffers[buffer]);
    }
    kernels[kernel](slots.data());
  }
  fclose(in);
  FILE* out = fopen(names[2], "wb");
  for (size_t i = 0; i < buffers.size(); ++i) {
    fwrite(buffers[i], 1, sizes[i], out);
    delete[] buffers[i];
  }
  fclose(out);
}
"""


class Call(NamedTuple):
    """A recorded call: the kernel's name, and its slots as (buffer, value). The buffer is None for numbers."""

    kernel: str
    slots: list[tuple[str | None, int]]


def build(kernels: Sequence[Kernel], dtype: str, lanes: int, flags: Sequence[str], edit: Edit = str) -> Path:
    """The runner of some kernels, compiled or found in the cache of kernels, which processes of a run share."""
    source = unit_source(kernels, edit) + RUNNER.replace("KERNELS", ", ".join(k.name for k in kernels))
    return build_runner(source, dtype, lanes, flags)


def build_tiled(kernel: Kernel, dtype: str, flags: Sequence[str], edit: Edit = str) -> Path:
    """The runner of a tiled kernel, which has one lane, likewise."""
    return build_runner(edit(host_source(kernel)) + RUNNER.replace("KERNELS", kernel.name), dtype, 1, flags)


def build_runner(source: str, dtype: str, lanes: int, flags: Sequence[str]) -> Path:
    """The program of a source that ends with the runner."""
    path, version = compiler()
    options = ("-std=c++17", "-Og", "-g1", "-pthread", *host_build.NO_CONTRACTION, "-fno-strict-aliasing", "-w")
    command = [path, *options, *host_build.native_flags(), *defines(dtype, lanes), *flags, "-x", "c++", "-"]

    def compiled(target: Path) -> None:
        full = [*command, "-o", str(target)]
        answer = subprocess.run(full, input=source, capture_output=True, text=True, check=False)
        assert answer.returncode == 0, answer.stderr[:2000]

    return cached(f"runner-{digest(source, version, *command, host_build.cpu_features())}", compiled)


@cache
def supported(flag: str) -> bool:
    """Whether a program with this sanitizer can be linked and run here."""
    with tempfile.TemporaryDirectory() as folder:
        probe = str(Path(folder) / "probe")
        command = [compiler()[0], flag, "-x", "c++", "-", "-o", probe]
        built = subprocess.run(command, input="int main() { return 0; }", capture_output=True, text=True, check=False)
        return built.returncode == 0 and subprocess.run([probe], capture_output=True, check=False).returncode == 0


def record(memory: Memory, calls: Calls) -> tuple[dict[str, np.ndarray], list[Call]]:
    """Carry out calls with one lane on `memory`, and return the buffers as they were before and the recorded calls.

    A list of worlds is recorded as it was at its call, as a buffer with a name of its own.
    """
    buffers = memory.snapshot()
    recorded: list[Call] = []
    for number, (kernel, arguments) in enumerate(calls):
        for name in ("listed", "num_listed"):
            buffers[f"{name}_{number}"] = memory.arrays[name].copy()
        slots = [slot for argument in arguments for slot in slots_of(argument, number)]
        recorded.append(Call(kernel.name, slots))
        call(kernel, memory, arguments)
    return buffers, recorded


def slots_of(argument: Argument, number: int) -> list[tuple[str | None, int]]:
    if isinstance(argument, Pointer):
        own = argument.buffer in ("listed", "num_listed")
        return [(f"{argument.buffer}_{number}" if own else argument.buffer, argument.offset)]
    if isinstance(argument, bytes):
        padded = argument + bytes(-len(argument) % 8)
        return [(None, value) for value in struct.unpack(f"<{len(padded) // 8}q", padded)]
    return [(None, argument or 0)]


class Result(NamedTuple):
    """The result of a run under a sanitizer: exit status, reports, and the buffers if the run wrote them."""

    status: int
    reports: str
    buffers: dict[str, np.ndarray]


def execute(program: Path, kernels: Sequence[Kernel], buffers: dict[str, np.ndarray], calls: list[Call]) -> Result:
    """Carry out recorded calls in the program, on copies of the buffers."""
    number = {kernel.name: i for i, kernel in enumerate(kernels)}
    place = {name: i for i, name in enumerate(buffers)}
    with tempfile.TemporaryDirectory() as folder:
        job, answer = Path(folder) / "job", Path(folder) / "answer"
        with job.open("wb") as file:
            file.write(struct.pack("<q", len(buffers)))
            for array in buffers.values():
                file.write(struct.pack("<q", array.nbytes) + array.tobytes())
            file.write(struct.pack("<q", len(calls)))
            for item in calls:
                file.write(struct.pack("<qq", number[item.kernel], len(item.slots)))
                for buffer, value in item.slots:
                    file.write(struct.pack("<qq", -1 if buffer is None else place[buffer], value))
        run = one_processor.run([str(program), str(job), str(answer)])
        content = answer.read_bytes() if answer.exists() else b""
    results: dict[str, np.ndarray] = {}
    at = 0
    for name, array in buffers.items() if content else ():
        results[name] = np.frombuffer(content[at : at + array.nbytes], array.dtype).reshape(array.shape)
        at += array.nbytes
    return Result(run.returncode, run.stderr, results)
