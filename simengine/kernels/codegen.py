"""Source text of a kernel: the dialect, the accessors of the model table, the stage bodies, and an entry point.

The arguments of a kernel whose unit is a world are, in order:

    header                              sizes, options and scalar physics of the model, by value
    model_ints, model_reals             the model table
    worlds, num_listed, begin, n        the worlds: begin .. begin + n - 1 if `worlds` is null, else the first
                                        *num_listed entries of the list `worlds`
    full                                null, or two numbers; if either is not zero, an arena is too small for what was
                                        counted, and the kernel does nothing
    fields                              reads, produced, updates, arena addresses
    working arrays                      of solvers of islands, in global memory
    parameters of contacts              null if the model table has them
    scalars                             of the bodies
    at_...                              offset of each scratch item, in words
    scratch_words                       words of scratch per unit
    scratch_memory                      global memory for the scratch, only if a group is larger than a warp

If the unit is an island, `worlds` are the records of all islands, `num_listed` is the entry of the kernel's size class
in the numbers of islands per class, and `begin` is the class. If the unit is a slice, `worlds` are the records of all
slices.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from simengine.kernels.headers import needed_headers
from simengine.kernels.kernel import Kernel
from simengine.kernels.prelude import collide_switch, constants, model_struct
from simengine.model.blob import HEADER
from simengine.model.table import PAIRS, PairType
from simengine.physics.files import path_of
from simengine.physics.stage import Stage
from simengine.state.fields import (
    ADDRESS_OF,
    FIELD,
    ISLAND_CONTACT_FIELDS,
    ISLAND_DOF_FIELDS,
    ISLAND_RECORD,
    ISLAND_ROW_FIELDS,
    RECORD_ROWS,
    Field,
)

_HERE = Path(__file__).parent
_HEADERS_AFTER_MODEL = (
    "spatial.cuh",
    "tree.cuh",
    "envelope.cuh",
    "branch_rows.cuh",
    "registers.cuh",
    "vector_matrices.cuh",
    "dense.cuh",
    "wide.cuh",
    "wide_solve.cuh",
    "branch_solve.cuh",
    "linalg.cuh",
    "contact.cuh",
    "hull.cuh",
    "box.cuh",
    "sites.cuh",
    "lengths.cuh",
    "springs.cuh",
    "wrap.cuh",
    "actuators.cuh",
    "dual.cuh",
    "fluid.cuh",
    "spans.cuh",
    "counting.cuh",
    "sorting.cuh",
    "broadphase.cuh",
    "row_blocks.cuh",
    "rows.cuh",
    "contact_rows.cuh",
    "equality.cuh",
    "blocks.cuh",
    "energy.cuh",
    "integrate.cuh",
    "implicit.cuh",
    "forces.cuh",
    "ray.cuh",
    "ray_hfield.cuh",
    "sensor.cuh",
    "contact_sensor.cuh",
    "random.cuh",
    "row_law.cuh",
    "unit_rows.cuh",
    "plain_rows.cuh",
    "weighted_rows.cuh",
    "primal.cuh",
    "newton_tile.cuh",
    "cone_update.cuh",
    "whiten.cuh",
    "pgs.cuh",
    "pgs_rows.cuh",
    "pgs_registers.cuh",
    "row_islands.cuh",
    "tangents.cuh",
    "noslip_rows.cuh",
    "noslip_sweeps.cuh",
)

_LARGE_HEADERS = ("large.cuh", "large_hessian.cuh", "large_pgs.cuh")
_CONVEX_HEADERS = (
    *("shape.cuh", "gjk.cuh", "epa.cuh", "polish.cuh", "segment_cylinder.cuh", "solid.cuh", "polygon.cuh"),
    "manifold.cuh",
    "searches.cuh",
)

COLUMN_STAGES = {"scan": "NUM_COLUMNS", "scan_islands": "NUM_ISLAND_COLUMNS", "scan_pairs": "NUM_PAIR_COLUMNS"}
"""Stages whose unit is a column, and how many there are."""

MODEL_PARAMETERS = ("const GRID_CONSTANT Header header", "const int* model_ints", "const real* model_reals")
RANGE_PARAMETERS = ("const int* worlds", "const int* num_listed", "int begin", "int n", "const int* full")


def headers_after_model(*kernels: Kernel) -> tuple[str, ...]:
    """Headers that follow `struct Model` in a source with these kernels, in their order."""
    large = any(kernel.unit == "large island" for kernel in kernels)
    return (*_HEADERS_AFTER_MODEL, *(_LARGE_HEADERS if large else ()))


def ctype(field: Field) -> str:
    """C type of a field's entries."""
    return "int" if field.kind == "int" else "real"


def body_signature(stage: Stage) -> str:
    """The signature that a stage's `.cu` must give to its device function."""
    parameters = ["int column"] if stage.name in COLUMN_STAGES else ["const Model& m"]
    parameters += [f"const {ctype(FIELD[n])}* {n}" for n in stage.reads]
    parameters += [f"{ctype(FIELD[n])}* {n}" for n in (*stage.writes, *stage.updates)]
    parameters += [f"real* {n}" for n, _ in stage.scratch]
    parameters += [f"int {n}" for n in stage.scalars]
    return f"DEVICE void {stage.function}({', '.join(parameters)})"


def parameters(kernel: Kernel) -> list[str]:
    """C parameters of the kernel's entry point, in launch order."""
    fields = [f"const {ctype(FIELD[n])}* {n}" for n in kernel.reads]
    fields += [f"{ctype(FIELD[n])}* {n}" for n in (*kernel.produced, *kernel.updates)]
    if kernel.unit == "column":
        return [*fields, *(f"int {n}" for n in kernel.scalars)]
    fields += [f"const int* {n}" for n in kernel.addresses]
    fields += [f"real* {n}" for n in kernel.island_scratch]
    fields += [f"const {ctype(FIELD[n])}* {n}" for n in kernel.parameters]
    scalars = [f"int {n}" for n in kernel.scalars]
    offsets = [f"int at_{item.name}" for item in kernel.scratch_items]
    return [*MODEL_PARAMETERS, *RANGE_PARAMETERS, *fields, *scalars, *offsets, "int scratch_words"]


def entry_words(field: Field) -> str:
    """C expression for the number of words of one entry."""
    factors = []
    for dim in field.dims:
        base, _, extra = str(dim).partition("+")
        factors.append(base if base.isdigit() else f"(m.{base}() + {extra})" if extra else f"m.{base}()")
    return " * ".join(factors) or "1"


def _pointer(kernel: Kernel, name: str) -> str:
    """C expression for the unit's part of a field in memory."""
    field = FIELD[name]
    if kernel.on_islands:
        return _island_pointer(name)
    if field.space in ("column", "island_column", "pair_column"):
        return f"{name} + (world - begin)"
    if field.space.startswith("island"):
        return name  # the whole shard's array; records hold the addresses of its parts
    start = f"{ADDRESS_OF[field.space]}[world]" if field.space in ADDRESS_OF else "world"
    if kernel.own_addresses and field.space == "contact":
        start = "own_contacts"
    return f"{name} + words_before({start}, {entry_words(field)})"


def _island_pointer(name: str) -> str:
    """C expression for an island's part of a solver's field, from the island's record."""
    if name == "nefc":
        return f"{name} + {ISLAND_RECORD} * size_t(index) + {RECORD_ROWS}"
    if name.startswith("island_"):
        return f"{name} + {_large_island_start(FIELD[name])}"
    starts = {"efc_J": "4 * size_t(record[6])", "efc_Y": "4 * size_t(record[6])", "solver_niter": "index"}
    starts |= dict.fromkeys(("qM", "qLD"), "4 * size_t(record[5])")
    starts |= dict.fromkeys(("contact_cand", *ISLAND_CONTACT_FIELDS), "record[7]")
    starts |= dict.fromkeys(ISLAND_DOF_FIELDS, "size_t(record[0]) * m.world_nv() + record[3]")
    starts |= {row: f"size_t(record[4]) * ({entry_words(FIELD[row])})" for row in ISLAND_ROW_FIELDS if row in FIELD}
    starts |= dict.fromkeys(("qM_blocks", "qLD_blocks"), "size_t(record[0]) * m.nM()")
    return f"{name} + {starts[name]}"


def _large_island_start(field: Field) -> str:
    """C expression for the first word of an island's part of a field that only solvers of large islands use."""
    first, *others = field.dims
    words = 1
    for size in field.dims if field.space == "row" else others:
        words *= int(size)
    starts = {
        "nblock": "size_t(record[0]) * m.nblock() + record[8]",
        "nv": "size_t(record[0]) * m.world_nv() + record[3]",
    }
    arena = {"row": f"size_t(record[4]) * {words}", "island_H": "4 * size_t(record[5])"}
    return arena[field.space] if field.space in arena else f"({starts[str(first)]}) * {words}"


def world_function(kernel: Kernel, until: int | None = None) -> str:
    """Inline function that runs the bodies for one world.

    Args:
        kernel: the kernel.
        until: number of bodies to run; None for all of them.
    """
    names = [p.split()[-1].lstrip("*") for p in parameters(kernel)]
    part = ["int part"] if kernel.in_parts else []
    received = ["const Header& header", *parameters(kernel)[1:], "int world", "real* scratch", *part]
    suffix = "world" if until is None else "before"
    lines = [f"DEVICE void {kernel.name}_{suffix}({', '.join(received)}) {{"]
    if kernel.on_islands:
        lines += [
            "  int index = world;  // islands of lower classes come before those of this one, which has number `begin`",
            "  for (int c = 1; c <= begin; ++c) index += num_listed[-c];",
            f"  const int* record = worlds + {ISLAND_RECORD} * size_t(index);",
        ]
    if kernel.unit == "slice":
        lines += ["  const int* record = worlds + 4 * size_t(world);", "  world = record[0];"]
    owner = "record[0]" if kernel.on_islands else "world"
    reals = f"model_reals + words_before({owner}, header.at[{HEADER.index('real_stride')}])"
    more = ["record[1]"] if kernel.on_islands else ["record[1]", "record[2]"] if kernel.unit == "slice" else []
    more += [_of_contacts(kernel, name) for name in kernel.parameters]
    members = ["header", "model_ints", f"settled_global({reals})", "scratch", *more]
    lines.append(f"  const Model m = {{{', '.join(members)}}};")
    lines.append("  scratch += COLUMN_WORDS;")
    if kernel.own_addresses:
        lines += [
            "  int contacts;",
            "  const int own_contacts = contacts_before(counts, world - begin, shard_size, &contacts);",
            "  if (contacts > contact_capacity) return;",
        ]
    for name in (*kernel.reads, *kernel.produced, *kernel.updates):
        kind = ctype(FIELD[name])
        const = "const " if name in kernel.reads else ""
        if name in kernel.in_scratch:
            lines.append(f"  {kind}* w_{name} = reinterpret_cast<{kind}*>(scratch + at_{name});")
        elif name in kernel.preload:
            lines.append(
                f"  const {kind}* w_{name} = preload(scratch + at_{name}, {_pointer(kernel, name)}, "
                f"{entry_words(FIELD[name])});"
            )
        else:
            lines.append(f"  {const}{kind}* w_{name} = {_pointer(kernel, name)};")
    if kernel.preload:
        lines.append("  lane_sync();")
    for i, stage in enumerate(kernel.stages[:until]):
        arguments = ["m", *(f"w_{n}" for n in stage.fields)]
        arguments += [_working(kernel, stage, n) for n, _ in stage.scratch]
        arguments += list(stage.scalars)
        lines.append(f"  ::{stage.callee}({', '.join(arguments)});")
        copied = kernel.copy_after(i)
        lines += [_copy_out(kernel, name) for name in copied]
        if copied and i < len(kernel.stages) - 1:
            # the next body may use the same words as scratch
            lines.append(f"  if ({' || '.join(copied)}) lane_sync();")
    lines.append("}")
    assert len(set(names)) == len(names), f"kernel {kernel.name} has a parameter twice"
    return "\n".join(lines)


def _of_contacts(kernel: Kernel, name: str) -> str:
    """C expression for the unit's part of a field with parameters of contacts; null if there is none."""
    start = "record[7]" if kernel.on_islands else "con_adr[world]"
    return f"{name} ? {name} + size_t({start}) * {entry_words(FIELD[name])} : 0"


def _working(kernel: Kernel, stage: Stage, name: str) -> str:
    """C expression for a working array of a body; matrices of islands may be large and are in global memory."""
    if kernel.on_islands and f"island_{name}" in kernel.island_scratch:
        return f"island_{name} + 4 * size_t(record[5])"
    return f"scratch + at_{stage.name}_{name}"


def _copy_out(kernel: Kernel, name: str) -> str:
    field = FIELD[name]
    count = entry_words(field)
    if field.space == "row":
        count = f"w_nefc[0] * ({count})"
    return f"  if ({name}) copy_out({_pointer(kernel, name)}, w_{name}, {count});"


def slot_of(kernel: Kernel, place: str) -> list[str]:
    """C statements that give the slot of the launch, and the part of its world, of the group of lanes at a place."""
    if not kernel.in_parts:
        return [f"const int slot = {place};"]
    # neighbouring groups have the same part of different worlds, which takes about equally long
    units = "(worlds ? max(*num_listed, 1) : n)"
    return [f"const int place = {place}, units = {units};", "const int part = place / units, slot = place % units;"]


def _beyond(kernel: Kernel) -> str:
    """C condition that the launch has no work for a group of lanes."""
    none = "slot >= (worlds ? *num_listed : n)"
    return f"{none} || part >= parts" if kernel.in_parts else none


def unit_of(kernel: Kernel) -> str:
    """C expression for the unit in a slot of the launch: its world, or the island's number within its class."""
    return "slot" if kernel.on_islands or kernel.unit == "slice" else "worlds ? worlds[slot] : begin + slot"


def _cuda_entry(kernel: Kernel) -> str:
    call = ", ".join(p.split()[-1].lstrip("*") for p in parameters(kernel))
    if kernel.unit == "column":
        return (
            f'extern "C" __global__ void __launch_bounds__(LANES) {kernel.name}({", ".join(parameters(kernel))}) {{\n'
            f"  {kernel.stages[0].name}(blockIdx.x, {call});\n}}\n"
        )
    own = "settled_shared(reinterpret_cast<real*>(shared) + threadIdx.y * (scratch_words + COLUMN_WORDS))"
    memory = ""
    if kernel.unit == "world":
        # the scratch of a large world may not fit in shared memory
        memory = "\n#if LANES > 32\n    , real* scratch_memory\n#endif\n"
        far = "scratch_memory + size_t(slot) * (scratch_words + COLUMN_WORDS)"
        own = f"\n#if LANES > 32\n      {far}\n#else\n      {own}\n#endif\n  "
    blocks = f"LANES > 32 ? 512 / LANES : {kernel.min_blocks_per_multiprocessor}"
    bounds = f"__launch_bounds__(LANES > 32 ? LANES : BLOCK, {blocks})"
    return (
        f'extern "C" __global__ void {bounds} {kernel.name}({", ".join(parameters(kernel))}{memory}) {{\n'
        "  if (full && (full[0] | full[1])) return;\n"
        "  extern __shared__ real4_storage shared[];\n"
        f"  {' '.join(slot_of(kernel, 'blockIdx.x * blockDim.y + threadIdx.y'))}\n"
        f"  if ({_beyond(kernel)}) return;\n"
        f"  const int world = {unit_of(kernel)};\n"
        f"  real* scratch = {own};\n"
        f"  {kernel.name}_world({call}, world, scratch{', part' * kernel.in_parts});\n}}\n"
    )


def task_name(kernel: Kernel, dtype: str, lanes: int) -> str:
    """Name of the device function that runs one tile of a kernel; unique among those that may be linked together."""
    return f"{kernel.name}_{dtype}_{lanes}_task"


def _task_entry(kernel: Kernel) -> str:
    """The body for workers of the executor `device`: a tile is as many units as groups fit in a warp, or one unit."""
    call = ", ".join(p.split()[-1].lstrip("*") for p in parameters(kernel))
    lines = [
        'extern "C" __device__ void TASK_NAME(const unsigned long long*, int tile, char* memory) {',
        "  // workers keep the arguments at the start of their memory; so the compiler knows where they are",
        "  extern __shared__ __align__(16) unsigned long long task_memory[];",
        "  const unsigned long long* slots = task_memory;",
        *unpacked(kernel),
    ]
    if kernel.unit == "column":
        return "\n".join([*lines, f"  {kernel.stages[0].name}(tile, {call});", "}"]) + "\n"
    own = "reinterpret_cast<real*>(memory)"
    if kernel.unit == "world":
        far = f"reinterpret_cast<real*>(slots[{len(parameters(kernel)) - 1}])"
        lines += ["#if LANES > 32", f"  real* const work = {far};", "#else", f"  real* const work = {own};", "#endif"]
    else:
        lines.append(f"  real* const work = {own};")
    place = "LANES > 32 ? slot : group_in_block()" if kernel.unit == "world" else "LANES > 32 ? 0 : group_in_block()"
    lines += [
        "  if (full && (full[0] | full[1])) return;",
        f"  {' '.join(slot_of(kernel, 'LANES > 32 ? tile : tile * (32 / LANES) + group_in_block()'))}",
        f"  if ({_beyond(kernel)}) return;",
        f"  const int world = {unit_of(kernel)};",
        f"  real* scratch = work + size_t({place}) * (scratch_words + COLUMN_WORDS);",
        f"  {kernel.name}_world({call}, world, scratch{', part' * kernel.in_parts});",
        "}",
    ]
    return "\n".join(lines) + "\n"


def unpacked(kernel: Kernel) -> list[str]:
    """C statements that take the arguments of a kernel from slots."""
    lines = []
    received = parameters(kernel)
    if kernel.unit != "column":
        lines.append("  const Header& header = *reinterpret_cast<const Header*>(slots);")
        lines.append("  slots += sizeof(Header) / 8;")
        received = received[1:]
    for i, parameter in enumerate(received):
        kind, name = parameter.rsplit(" ", 1)
        value = f"({kind})slots[{i}]" if "*" in kind else f"(int)(long long)slots[{i}]"
        lines.append(f"  {parameter} = {value};" if "*" in kind else f"  const int {name} = {value};")
    return lines


def _told_apart(which: str) -> tuple[PairType, ...]:
    """Pair types by the word of `Stage.collides`."""
    plain = tuple(pair for pair in PAIRS if pair.plain or not pair.heavy)
    light = tuple(pair for pair in PAIRS if not pair.heavy)
    counted = tuple(pair for pair in PAIRS if pair.name != "convex" and not pair.shared)
    return {"": (), "light": light, "plain": plain, "counted": counted, "any": PAIRS}[which]


def _shared_sources(stages: Sequence[Stage]) -> list[Path]:
    """Files with functions that the bodies call: of the pair types that they tell apart, and of other stages."""
    names = [pair.name for stage in stages for pair in _told_apart(stage.collides)]
    names += [shared for stage in stages for shared in stage.shares]
    return [path_of(f"{name}.cu") for name in dict.fromkeys(names)]


def stage_sources(*kernels: Kernel) -> list[Path]:
    """Files of the bodies, those whose functions others call first."""
    stages = [stage for kernel in kernels for stage in kernel.stages]
    return list(dict.fromkeys([*_shared_sources(stages), *(stage.source for stage in stages)]))


def body_sources(*kernels: Kernel) -> list[str]:
    """Texts of the bodies, behind those that they share and what is generated for them."""
    stages = [stage for kernel in kernels for stage in kernel.stages]
    paths, shared = stage_sources(*kernels), _shared_sources(stages)
    convex = any(path.stem == "convex" for path in paths)
    switches = dict.fromkeys(stage.collides for stage in stages if stage.collides)
    return [
        *(path_of(name).read_text() for name in _CONVEX_HEADERS if convex),
        *(path.read_text() for path in shared),
        *(collide_switch(f"collide_{which}", _told_apart(which)) for which in switches),
        *(path.read_text() for path in paths[len(shared) :]),
    ]


def dialect() -> str:
    """The text that comes before `struct Model` in every source."""
    return "\n".join((_HERE / name).read_text() for name in ("dialect.cuh", "addresses.cuh"))


def source_of(kernel: Kernel, definitions: list[str], entry: str, after_headers: str = "") -> str:
    """Source with an entry point: the dialect, the model's accessors, needed headers and the bodies of the stages."""
    own = (f"#define {name} {value}" for name, value in kernel.constants)
    parts = [*definitions, *own, dialect(), constants()]
    bodies = [after_headers, *body_sources(kernel), entry]
    if kernel.unit != "column":
        parts += ["#define UNIT_ISLAND"] if kernel.on_islands else []
        parts.append(model_struct(kernel))
        parts += needed_headers(headers_after_model(kernel), "\n".join(bodies))
    return "\n".join(part.replace("#pragma once\n", "") for part in (*parts, *bodies))


def kernel_source(kernel: Kernel, target: str) -> str:
    """Complete source of a kernel for "cuda" or "task", which is a body for workers of the executor `device`.

    The build defines REAL, REAL_IS_FLOAT and LANES, and TASK_NAME for tasks. Bodies are linked with each other, and the
    linker takes types of one name for one type, with the methods of any of them: so all but the entry point of a task,
    such as its `Model`, has no name for the linker.
    """
    entry = {"cuda": _cuda_entry, "task": _task_entry}[target](kernel)
    function = "" if kernel.unit == "column" else world_function(kernel)
    if target == "cuda":
        return source_of(kernel, [], f"{function}\n{entry}" if function else entry)
    return source_of(kernel, ["#define AS_TASK", "namespace {"], f"{function}\n}}  // namespace\n{entry}")
