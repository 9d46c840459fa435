"""Kernels of whole steps on the host. Each team is a thread with one lane, and teams meet at a POSIX barrier.

The code of a team is the one that the GPU runs. A world's shared memory starts as NaN. After each barrier, all words
that the kernel does not declare alive are overwritten with NaN, so that a value used after its lifetime spoils results.
"""

from __future__ import annotations

import ctypes
import subprocess
from math import prod
from pathlib import Path

import numpy as np

from simengine.kernels import host_build
from simengine.kernels.placing import ScratchPlan
from simengine.kernels.sources import source_of
from simengine.kernels.step_codegen import step_parameters, team_function
from simengine.kernels.step_kernel import TEAMS, StepKernel, step_kernel
from simengine.model import ModelTable
from simengine.model.pair_types import PAIRS
from simengine.state.fields import FIELD, entry_shape
from simengine_scheduler.native.cache import cached, digest
from tests.stages.harness import FRONT, Argument, Memory, Pointer, slot_bytes
from tests.stages.harness_sanitizer import RUNNER, Call, Result, execute, slots_of

COLUMN_WORDS = 4
"""Words of a team for linear algebra, as in dialect.cuh. Those of all teams are at the start of shared memory."""

NO_PHASE = -2
"""The value of `left_out` if no barrier is left out."""

MEETING = f"""
#include <pthread.h>
#include <cstring>
#include <thread>
#include <vector>

// Two in turn. With one, a team that is slow to leave it would meet there another that has already come to the next
// meeting, and the thread sanitizer would take what that one did between the two for ordered.
static pthread_barrier_t barriers[2];
static thread_local int meetings;
static const unsigned char* kept;  // for each barrier and near word, whether its value is needed behind it, or null
static int left_out;               // phase whose barrier is missing

static void meet(int phase, int team, real* scratch, int words) {{
  if (phase == left_out) return;
  pthread_barrier_wait(&barriers[meetings++ % 2]);
  if (!kept) return;
  const unsigned char* needed = kept + size_t(phase + 1) * words;
  if (team == 0) {{
    for (int i = -{TEAMS} * COLUMN_WORDS; i < words; ++i) {{
      if (i < 0 || !needed[i]) memset(scratch + i, 0xff, sizeof(real));  // NaN, and -1 as an integer
    }}
  }}
  pthread_barrier_wait(&barriers[meetings++ % 2]);
}}
#define TEAM_BARRIER(phase) meet(phase, team, scratch, scratch_words)
"""


def teams_source(kernel: StepKernel) -> str:
    """Complete source of `NAME(slots)`, which steps all worlds in turn. See `arguments` for the order of slots."""
    return source_of(kernel, [], "\n".join([MEETING, team_function(kernel), _entry(kernel)]))


def _entry(kernel: StepKernel) -> str:
    received = step_parameters(kernel)[1:]
    values = [f"({kind})slots[{i}]" for i, kind in enumerate(p.rsplit(" ", 1)[0] for p in received)]
    after = len(received)
    words = f"(scratch_words + {TEAMS} * COLUMN_WORDS)"
    return "\n".join(
        [
            f'extern "C" void {kernel.name}(const uint64_t* slots) {{',
            "  const Header& header = *reinterpret_cast<const Header*>(slots);",
            "  slots += sizeof(Header) / 8;",
            *(f"  {parameter} = {value};" for parameter, value in zip(received, values, strict=True)),
            f"  real* of_world = (real*)slots[{after}];",
            f"  kept = (const unsigned char*)slots[{after + 1}];",
            f"  left_out = (int)slots[{after + 2}];",
            f"  for (pthread_barrier_t& barrier : barriers) pthread_barrier_init(&barrier, nullptr, {TEAMS});",
            "  for (int slot = 0; slot < n; ++slot) {",
            f"    memset(of_world, 0xff, {words} * sizeof(real));",
            "    std::vector<std::thread> teams;",
            f"    for (int team = 0; team < {TEAMS}; ++team) {{",
            "      teams.emplace_back([=, &header] {",
            f"        {kernel.name}_team(header, {', '.join(map(_name, received))}, team, slot, of_world);",
            "      });",
            "    }",
            "    for (std::thread& team : teams) team.join();",
            "  }",
            "  for (pthread_barrier_t& barrier : barriers) pthread_barrier_destroy(&barrier);",
            "}",
            "",
        ]
    )


def _name(parameter: str) -> str:
    return parameter.split()[-1].lstrip("*")


def kernel_of(model: ModelTable) -> StepKernel:
    """The kernel of whole steps of a model, which must be simple enough to have one."""
    pairs = [PAIRS[code] for code in model.pair_codes]
    assert all(pair.plain or not pair.heavy for pair in pairs)
    return step_kernel(model.opt_integrator, model.has_fluid, any(pair.plain for pair in pairs))


def arguments(
    kernel: StepKernel, memory: Memory, shared_rows: int, poison: bool = True, left_out: int = NO_PHASE
) -> list[Argument]:
    """Arguments of `NAME(slots)`: the kernel's, shared memory, which of its words are alive, and the omitted barrier.

    Args:
        kernel: the kernel.
        memory: its memory, to which buffers in place of shared and global scratch memory are added, poisoned.
        shared_rows: largest number of rows with which a world's rows are in shared memory.
        poison: whether words that are not alive are overwritten after each barrier.
        left_out: the phase whose barrier is omitted.

    The memory's "ctrl" holds the controls of every step: (steps, worlds, nu).
    """
    model, controls = memory.model, memory.arrays["ctrl"]
    near = kernel.plan_scratch(model.sizes, shared_rows, registers=False)
    far = kernel.plan_global(model.sizes, model.ncon_max, model.nefc_max if model.nefc_max > shared_rows else 0)
    memory.add("shared_memory", np.full(near.words + TEAMS * COLUMN_WORDS, np.nan, memory.dtype))
    memory.add("global_memory", np.full(far.words * memory.num_worlds, np.nan, memory.dtype))
    memory.add("kept", _kept(kernel, model, shared_rows, near))
    values: dict[str, Argument] = {
        **{"header": memory.header, "begin": FRONT, "n": memory.num_worlds, "shard_size": memory.num_worlds},
        **{"steps": len(controls), "controls_stride": controls[0].size, "worlds_in_warp": 1},
        "asleep": None,
        **{"evaluations": 4 if model.opt_integrator == "rk4" else 1},
        **{"shared_rows": shared_rows, "global_words_per_world": far.words, "scratch_words": near.words},
        **{f"at_{name}": offset for name, offset in near.offsets.items()},
        **{f"global_{name}": offset for name, offset in far.offsets.items()},
    }
    own = [values[name] if name in values else Pointer(name) for name in map(_name, step_parameters(kernel))]
    return [*own, Pointer("shared_memory"), Pointer("kept") if poison else None, left_out]


def _kept(kernel: StepKernel, model: ModelTable, shared_rows: int, plan: ScratchPlan) -> np.ndarray:
    """Which words of shared memory are alive across each barrier, (1 + phases, words).

    The first barrier is before the first phase, and the others are after each phase.
    """
    kept = np.zeros((1 + len(kernel.phases), plan.words), np.uint8)
    for item in kernel.scratch_items:
        if item.name in FIELD:  # the working memory of a stage is alive within its phase only
            words = prod(entry_shape(FIELD[item.name], model.sizes)) * (shared_rows if item.name in kernel.rows else 1)
            of_item = kept[:, plan.offsets[item.name] :][:, :words]
            of_item[item.first + 1 : item.last + 1] = 1
            if item.name in kernel.updates:  # the next evaluation reads it
                of_item[[0, -1]] = 1
    return kept


def run(kernel: StepKernel, memory: Memory, slots: list[Argument]) -> None:
    """Call the kernel's teams in this process, compiled like other kernels of the host."""
    path = host_build.build_library(f"{kernel.name}_teams", teams_source(kernel), host_build.defines(memory.dtype, 1))
    packed = np.frombuffer(b"".join(slot_bytes(slot, memory) for slot in slots), np.uint64)
    function = getattr(ctypes.CDLL(str(path)), kernel.name)
    function.argtypes, function.restype = [ctypes.c_void_p], None
    function(packed.ctypes.data)


def run_under(sanitizer: str, kernel: StepKernel, memory: Memory, slots: list[Argument]) -> Result:
    """Call the kernel's teams in a separate program, which is compiled with a sanitizer."""
    path, version = host_build.compiler()
    source = teams_source(kernel) + RUNNER.replace("KERNELS", kernel.name)
    options = (
        "-std=c++17",
        "-Og",
        "-g1",
        "-pthread",
        *host_build.NO_CONTRACTION,
        "-fno-strict-aliasing",
        "-w",
        sanitizer,
    )
    command = [path, *options, *host_build.native_flags(), *host_build.defines(memory.dtype, 1), "-x", "c++", "-"]

    def build(target: Path) -> None:
        full = [*command, "-o", str(target)]
        answer = subprocess.run(full, input=source, capture_output=True, text=True, check=False)
        assert answer.returncode == 0, answer.stderr[:2000]

    program = cached(f"teams-{digest(source, version, *command, host_build.cpu_features())}", build)
    call = Call(kernel.name, [word for slot in slots for word in slots_of(slot, 0)])
    return execute(program, [kernel], memory.snapshot(), [call])
