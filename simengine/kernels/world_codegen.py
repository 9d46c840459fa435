"""Source text of the function that runs the bodies of a kernel for one world, island or slice."""

from __future__ import annotations

from simengine.kernels.kernel import Kernel
from simengine.kernels.signatures import ctype, entry_words, parameters
from simengine.model.blob import HEADER
from simengine.physics.stage import Stage
from simengine.state.field import Field
from simengine.state.fields import (
    ADDRESS_OF,
    FIELD,
    ISLAND_CONTACT_FIELDS,
    ISLAND_DOF_FIELDS,
    ISLAND_ROW_FIELDS,
    ROW_SPACES,
)
from simengine.state.island_fields import ISLAND_RECORD, RECORD_ROWS


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
            copy = f"scratch + at_{name}" if kind == "real" else f"reinterpret_cast<{kind}*>(scratch + at_{name})"
            lines.append(f"  const {kind}* w_{name} = preload({copy}, {_pointer(kernel, name)}, {_words(name)});")
        else:
            lines.append(f"  {const}{kind}* w_{name} = {_pointer(kernel, name)};")
    if kernel.preload:
        lines.append("  lane_sync();")
    for i, stage in enumerate(kernel.stages[:until]):
        arguments = ["m", *(f"w_{n}" for n in stage.fields)]
        arguments += [_working(kernel, stage, n) for n, _ in stage.scratch]
        arguments += list(stage.scalars)
        kept = f"if ({' || '.join(stage.writes)}) " if stage.if_kept else ""
        lines.append(f"  {kept}::{stage.callee}({', '.join(arguments)});")
        copied = kernel.copy_after(i)
        lines += [_copy_out(kernel, name) for name in copied]
        if copied and i < len(kernel.stages) - 1:
            # the next body may use the same words as scratch
            lines.append(f"  if ({' || '.join(copied)}) lane_sync();")
    lines.append("}")
    assert len(set(names)) == len(names), f"kernel {kernel.name} has a parameter twice"
    return "\n".join(lines)


def _pointer(kernel: Kernel, name: str) -> str:
    """C expression for the unit's part of a field in memory."""
    field = FIELD[name]
    if kernel.on_islands:
        return _island_pointer(name)
    if field.space in ("column", "island_column", "pair_column"):
        return f"{name} + (world - begin)"
    if field.space == "queue":
        return f"{name} + words_before(begin, {entry_words(field)})"
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


def _of_contacts(kernel: Kernel, name: str) -> str:
    """C expression for the unit's part of a field with parameters of contacts; null if there is none."""
    start = "record[7]" if kernel.on_islands else "con_adr[world]"
    return f"{name} ? {name} + size_t({start}) * {entry_words(FIELD[name])} : 0"


def _working(kernel: Kernel, stage: Stage, name: str) -> str:
    """C expression for a working array of a body; matrices of islands may be large and are in global memory."""
    if kernel.on_islands and f"island_{name}" in kernel.island_scratch:
        return f"island_{name} + 4 * size_t(record[5])"
    return f"scratch + at_{stage.name}_{name}"


def _words(name: str) -> str:
    """C expression for the words of a unit's part of a field."""
    field = FIELD[name]
    return f"w_nefc[0] * ({entry_words(field)})" if field.space in ROW_SPACES else entry_words(field)


def _copy_out(kernel: Kernel, name: str) -> str:
    return f"  if ({name}) copy_out({_pointer(kernel, name)}, w_{name}, {_words(name)});"


def slot_of(kernel: Kernel, place: str) -> list[str]:
    """C statements that give the slot of the launch, and the part of its world, of the group of lanes at a place."""
    if not kernel.in_parts:
        return [f"const int slot = {place};"]
    # neighbouring groups have the same part of different worlds, which takes about equally long
    units = "(worlds ? max(*num_listed, 1) : n)"
    return [f"const int place = {place}, units = {units};", "const int part = place / units, slot = place % units;"]


def beyond(kernel: Kernel) -> str:
    """C condition that the launch has no work for a group of lanes."""
    none = "slot >= (worlds ? *num_listed : n)"
    return f"{none} || part >= parts" if kernel.in_parts else none


_QUEUED = {"search_queue": ("nkept", " / MAX_CONVEX"), "prism_queue": ("nprism", "")}
"""The size that gives the room of each queue for searches of a world, and what it is divided by."""


def from_queue(kernel: Kernel, run: str, place: str = "") -> list[str]:
    """C statements that run a kernel's world function for the entries of the queue that a group of lanes takes.

    Args:
        kernel: the kernel.
        run: C statement that calls the world function.
        place: C expression for the place of the group of lanes among all of the launch; empty if it takes all entries.
    """
    queue = kernel.queue
    size, searches = _QUEUED[queue]
    number = f"header.at[{HEADER.index(size)}]"
    words = entry_words(FIELD[queue]).replace(f"m.{size}()", number)
    # groups of a warp that take different ways wait for each other, so that few searches get a warp each
    spread = [
        "if (!takes_queue(waiting, groups)) return;",
        "int spread = 1;",
        "while (2 * spread * LANES <= WARP_LANES && 2 * spread * waiting <= groups) spread *= 2;",
        "if (place % spread) return;",
    ]
    first = "place / spread" if place else "place"
    return [
        f"const int groups = {'(worlds ? *num_listed : n) * parts' if place else 'worlds ? *num_listed > 0 : 1'};",
        f"const int place = {place or '0'};",
        "if (place >= groups) return;",
        f"const SearchQueue queue = {{{queue} + words_before(begin, {words}), {number}{searches}, n}};",
        f"const int waiting = queue.length({kernel.queued});",
        *(spread if place else ()),
        f"ROLLED for (int at = {first}; at < waiting; at += groups) {{",
        "  const SearchOf own = queue.entry(at);",
        "  const int world = begin + own.world, part = own.search;",
        f"  {run}",
        "}",
    ]


def unit_of(kernel: Kernel) -> str:
    """C expression for the unit in a slot of the launch: its world, or the island's number within its class."""
    return "slot" if kernel.on_islands or kernel.unit == "slice" else "worlds ? worlds[slot] : begin + slot"
