"""Source text of a kernel of whole steps (`StepKernel`): the stages of each phase, divided among teams of warps.

The arguments are, in order:

    header                              sizes, options and scalar physics of the model, by value
    model_ints, model_reals             the model table
    begin, n                            the first world, and the number of worlds
    steps, controls_stride              number of steps; words from the controls of one step to those of the next, zero
                                        if all steps have the same
    worlds_in_warp                      worlds that share a warp
    global_words_per_world              words of global memory per world
    shared_rows                         most rows that a world holds in shared memory
    fields                              reads, stored fields, state
    global_memory                       global memory for contacts, and for the rows of worlds with many
    asleep                              memory of the host that says whether the worlds are left as they are, or null
    totals_host                         the number of flagged worlds becomes one where a world is flagged, for the host
                                        to count them
    scalars                             of the bodies
    at_..., global_...                  offset of each item in shared memory, and of each field in global memory
    scratch_words                       words of shared memory per world

A block has `TEAMS` times the warps of a team, and the kernel computes the latter from the size of the block.
"""

from __future__ import annotations

from simengine.kernels.signatures import MODEL_PARAMETERS, ctype, entry_words
from simengine.kernels.sources import source_of
from simengine.kernels.step_kernel import MOST_WARPS, TEAMS, WARP, StepKernel
from simengine.physics.stage import Stage
from simengine.state.fields import FIELD

_NUMBERS = ("begin", "n", "steps", "controls_stride", "worlds_in_warp", "global_words_per_world", "shared_rows")


def scalars(kernel: StepKernel) -> tuple[str, ...]:
    """Integer arguments of the bodies, except the number of the evaluation, which the kernel counts itself."""
    return (*(name for name in kernel.scalars if name != "rk_stage"), "evaluations")


def step_parameters(kernel: StepKernel) -> list[str]:
    """C parameters of the entry point, in launch order."""
    fields = [f"const {ctype(FIELD[name])}* {name}" for name in kernel.reads]
    fields += [f"{ctype(FIELD[name])}* {name}" for name in (*kernel.stored, *kernel.state)]
    offsets = [f"at_{item.name}" for item in kernel.scratch_items] + [f"global_{name}" for name in kernel.global_fields]
    numbers = (*scalars(kernel), *offsets, "scratch_words")
    return [
        *(*MODEL_PARAMETERS, *(f"int {name}" for name in _NUMBERS)),
        *(*fields, "real* global_memory", "const int* asleep", "int* totals_host"),
        *(f"int {name}" for name in numbers),
    ]


def step_source(kernel: StepKernel) -> str:
    """Complete CUDA source; the build defines REAL, REAL_IS_FLOAT and LANES."""
    definitions = ["#define AS_STEP", "#define TEAM_BARRIER(phase) __syncthreads()"]
    return source_of(kernel, definitions, f"{team_function(kernel)}\n{_entry(kernel)}")


def team_function(kernel: StepKernel) -> str:
    """Function `NAME_team` that each team runs for a world, whose shared memory is `of_world`.

    The teams wait for each other at TEAM_BARRIER(phase), with phase -1 before the first phase. The function works on
    any processor on which the teams run concurrently.
    """
    received = ["const Header& header", *step_parameters(kernel)[1:], "int team", "int slot", "real* of_world"]
    return "\n".join(
        [
            f"DEVICE void {kernel.name}_team({', '.join(received)}) {{",
            "  const int world = begin + slot;",
            "  const real* reals = settled_global(model_reals + words_before(world, header.at[REAL_STRIDE]));",
            "  const Model m = {header, model_ints, reals, of_world + team * COLUMN_WORDS};",
            f"  real* scratch = settled_shared(of_world + {TEAMS} * COLUMN_WORDS);",
            "  real* own_global = global_memory + words_before(slot, global_words_per_world);",
            *_pointers(kernel),
            *_copies(kernel, "w_{0}[i] = {1}[i]"),
            "  TEAM_BARRIER(-1);",
            "  ROLLED for (int step = 0; step < steps; ++step) {",
            "    const real* w_ctrl = ctrl + words_before(step, controls_stride) + words_before(world, m.nu());",
            "    ROLLED for (int rk_stage = 0; rk_stage < evaluations; ++rk_stage) {",
            *_phases(kernel),
            "    }",
            "  }",
            *_copies(kernel, "{1}[i] = w_{0}[i]"),
            "  if (team == 0 && lane() == 0 && w_world_status[0] != STATUS_HEALTHY) totals_host[COLUMN_BAD] = 1;",
            "}",
            "",
        ]
    )


def _entry(kernel: StepKernel) -> str:
    bounds = f"__launch_bounds__({WARP * TEAMS * MOST_WARPS}, 1)"
    call = ", ".join(p.split()[-1].lstrip("*") for p in step_parameters(kernel))
    return "\n".join(
        [
            f'extern "C" __global__ void {bounds} {kernel.name}({", ".join(step_parameters(kernel))}) {{',
            "  extern __shared__ real4_storage shared[];",
            "  // one thread reads it, since a read from memory of the host takes about a microsecond",
            "  if (asleep && __syncthreads_or(threadIdx.x == 0 && *static_cast<const volatile int*>(asleep))) return;",
            f"  const int warps = blockDim.x / {WARP * TEAMS}, warp = threadIdx.x / {WARP};",
            f"  const int team = warp / warps, in_warp = threadIdx.x % {WARP} / LANES;",
            "  const int place = warp % warps * worlds_in_warp + in_warp;",
            "  const int slot = blockIdx.x * warps * worlds_in_warp + place;",
            "  if (in_warp >= worlds_in_warp || slot >= n) return;",
            f"  real* of_world = reinterpret_cast<real*>(shared) + place * (scratch_words + {TEAMS} * COLUMN_WORDS);",
            f"  {kernel.name}_team({call}, team, slot, of_world);",
            "}",
            "",
        ]
    )


def _of_world(name: str) -> str:
    """C expression for a world's part of a field in memory."""
    if FIELD[name].space == "column":
        return f"{name} + slot"
    return f"{name} + words_before(world, {entry_words(FIELD[name])})"


def _pointers(kernel: StepKernel) -> list[str]:
    lines = []
    for name in kernel.shared_fields:
        kind = ctype(FIELD[name])
        lines.append(f"  {kind}* w_{name} = reinterpret_cast<{kind}*>(scratch + at_{name});")
    for name in kernel.global_fields:
        kind, prefix = ctype(FIELD[name]), "f" if name in kernel.rows else "w"
        lines.append(f"  {kind}* {prefix}_{name} = reinterpret_cast<{kind}*>(own_global + global_{name});")
    lines += [f"  const {ctype(FIELD[name])}* w_{name} = {_of_world(name)};" for name in kernel.reads if name != "ctrl"]
    return lines + [f"  {ctype(FIELD[name])}* w_{name} = {_of_world(name)};" for name in kernel.stored]


def _copies(kernel: StepKernel, assignment: str) -> list[str]:
    """Copies of the state from or to global memory, done by the first team."""
    lines = ["  if (team == 0) {"]
    for name in kernel.state:
        lines.append(f"    LANE_FOR(i, {entry_words(FIELD[name])}) {assignment.format(name, f'({_of_world(name)})')};")
    return [*lines, "  }"]


def _phases(kernel: StepKernel) -> list[str]:
    lines = []
    for number, phase in enumerate(kernel.phases):
        for team, track in enumerate(phase):
            if track:
                lines += [f"      if (team == {team}) {{", *(_call(kernel, stage) for stage in track), "      }"]
        lines.append(f"      TEAM_BARRIER({number});")
    return lines


def _call(kernel: StepKernel, stage: Stage) -> str:
    """Call of a stage. Worlds without rows skip the stage that makes them; frozen worlds skip solver and integrator."""
    arguments = ["m", *(f"{'r' if name in kernel.rows else 'w'}_{name}" for name in stage.fields)]
    arguments += [f"scratch + at_{stage.name}_{name}" for name, _ in stage.scratch]
    call = f"        ::{stage.callee}({', '.join([*arguments, *stage.scalars])});"
    rows = [name for name in stage.fields if name in kernel.rows]
    if "qacc" not in stage.fields and not rows:
        return call
    wanted = "w_world_status[0] == STATUS_HEALTHY" if "qacc" in stage.fields else "w_nefc[0] > 0"
    near = [
        f"          {ctype(FIELD[name])}* r_{name} = w_nefc[0] <= shared_rows ? w_{name} : f_{name};" for name in rows
    ]
    return "\n".join([f"        if ({wanted}) {{", *near, f"  {call}", "        }"])
