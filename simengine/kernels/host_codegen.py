"""Source text of a kernel for the host, which takes worlds one after another, or in tiles.

A tile is as many worlds as a vector has entries. In a tiled kernel a real number is a vector with one entry for each
world of the tile. The fields of a tile are gathered from the worlds, and scattered to them again:

    bodies before `tiled_from`     world by world, each world with scratch of its own
    gather                         inputs from memory, and what those bodies left in scratch
    the other bodies               all worlds of the tile at once, in the namespace `tiled`
    scatter                        outputs to memory

The last tile of a call may have fewer worlds: its other entries repeat the last world, and are not stored. Where worlds
have model tables of their own, the build defines OWN_TABLES, and the numbers of these are gathered too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from simengine.kernels.kernel import Kernel
from simengine.kernels.signatures import COLUMN_STAGES, entry_words, parameters, unpacked
from simengine.kernels.sources import source_of
from simengine.kernels.world_codegen import from_queue, unit_of, world_function
from simengine.state.fields import ADDRESS_OF, FIELD, ROW_SPACES

_HERE = Path(__file__).parent


def host_source(kernel: Kernel) -> str:
    """Complete source of a kernel; the build defines REAL, REAL_IS_FLOAT and LANES."""
    names = ("host_lanes.h", "tile.h", "host_math.h", "vectors.h")
    lanes, tile, functions_of_c, vectors = ((_HERE / name).read_text() for name in names)
    vectors = f"{functions_of_c}\n{vectors}".replace("#pragma once\n", "")
    if kernel.tiled_from is None:
        functions = [world_function(kernel)] if kernel.unit != "column" else []
        return source_of(kernel, [vectors], "\n".join([*functions, host_entry(kernel)]), lanes)
    before, after = kernel.stages[: kernel.tiled_from], kernel.stages[kernel.tiled_from :]
    of_worlds = ""
    if before:
        first = world_function(kernel, kernel.tiled_from)
        again = "\n".join(f"#undef {name}" for name in ("R", "REAL_EPS", "REAL_MAX", "MOST_DENSE", "MATRIX_VECTORS"))
        of_worlds = f"{source_of(replace(kernel, stages=before), [], first)}\n{again}"
    functions = [_tile_function(kernel), _tiles_function(kernel)]
    tiled = source_of(replace(kernel, stages=after), [tile], "\n".join(functions))
    return "\n".join([vectors, of_worlds, f"namespace tiled {{\n{tiled}\n}}", _tiled_entry(kernel)])


def _tiled_entry(kernel: Kernel) -> str:
    """The function of a tiled kernel that the host calls, with its arguments in slots."""
    return f'extern "C" void {kernel.name}(const uint64_t* slots) {{ tiled::{kernel.name}_tiles(slots); }}\n'


def host_entry(kernel: Kernel) -> str:
    """The function of a kernel that the host calls, with its arguments in slots; it takes one world after another."""
    call = ", ".join(_names(kernel))
    lines = [f"static void {kernel.name}_lane(const uint64_t* slots, real* scratch) {{", *unpacked(kernel)]
    if kernel.unit == "column":
        stage = kernel.stages[0].name
        lines += [f"  for (int column = 0; column < {COLUMN_STAGES[stage]}; ++column) {stage}(column, {call});", "}"]
    elif kernel.queued:
        run = f"{kernel.name}_world({call}, world, scratch, part); lane_sync();"  # the next uses the same scratch
        lines += ["  if (full && (full[0] | full[1] | full[2])) return;", *from_queue(kernel, run), "}"]
    else:
        lines += [
            "  if (full && (full[0] | full[1] | full[2])) return;",
            "  const int count = worlds ? *num_listed : n;",
            "  for (int slot = 0; slot < count; ++slot) {",
            f"    const int world = {unit_of(kernel)};",
            "    for (int part = 0; part < parts; ++part) {" if kernel.in_parts else "    {",
            f"      {kernel.name}_world({call}, world, scratch{', part' * kernel.in_parts});",
            "      lane_sync();",  # the next world uses the same scratch
            "    }",
            "  }",
            "}",
        ]
    words = (
        "COLUMN_WORDS"
        if kernel.unit == "column"
        else f"COLUMN_WORDS + (int)(int64_t)slots[sizeof(Header) / 8 + {len(parameters(kernel)) - 2}]"
    )
    lines.append(
        f'extern "C" void {kernel.name}(const uint64_t* slots) {{ run_lanes({kernel.name}_lane, slots, {words}); }}'
    )
    return "\n".join(lines) + "\n"


def _names(kernel: Kernel) -> list[str]:
    return [p.split()[-1].lstrip("*") for p in parameters(kernel)]


def _of_numbers(lines: Iterable[str]) -> list[str]:
    """The same declarations, with pointers to numbers of single worlds."""
    return [line.replace("const real*", "const REAL*").replace("real*", "REAL*") for line in lines]


def _made_before(kernel: Kernel) -> set[str]:
    """Fields that the bodies of single worlds leave in scratch."""
    return {name for stage in kernel.stages[: kernel.tiled_from] for name in stage.writes}


def _gathered(kernel: Kernel) -> tuple[list[str], list[str]]:
    """Fields in memory that the bodies of a tile read or update: real numbers, and integers."""
    used = {name for stage in kernel.stages[kernel.tiled_from :] for name in stage.fields}
    names = [name for name in (*kernel.reads, *kernel.updates) if name in used]
    in_order = all(FIELD[name].space in ("world", "block") for name in names)
    assert in_order, f"a tile of kernel {kernel.name} reads from an arena"
    return [n for n in names if FIELD[n].kind == "real"], [n for n in names if FIELD[n].kind == "int"]


def _tile_function(kernel: Kernel) -> str:
    """The function that runs the bodies for the worlds of a tile. It takes lane_words of scratch for each world."""
    received = ["const Header& header", *_of_numbers(parameters(kernel)[1:])]
    reals, ints = _gathered(kernel)
    lines = [
        f"DEVICE void {kernel.name}_tile({', '.join(received)}, const int* tile, int number, real* scratch) {{",
        "#ifdef OWN_TABLES",
        "  long long offset[TILE];",
        "  for (int k = 0; k < TILE; ++k) offset[k] = (long long)tile[k] * header.at[REAL_STRIDE];",
        "  const Model m = {header, model_ints, {model_reals, offset}, scratch};",
        "#else",
        "  const Model m = {header, model_ints, {model_reals}, scratch};",
        "#endif",
        "  scratch += COLUMN_WORDS;",
        "  real* gathered = scratch + scratch_words;",
    ]
    for name in reals:
        words = entry_words(FIELD[name])
        lines += [
            f"  real* w_{name} = gathered;",
            f"  gathered += {words};",
            f"  load(w_{name}, {name}, tile, {words});",
        ]
    lines += [f"  int w_{name}[TILE];\n  load(w_{name}, {name}, tile);" for name in ints]
    lines += _before(kernel) if kernel.tiled_from else []
    for name in kernel.produced:
        if name in _made_before(kernel):
            continue
        integer = FIELD[name].kind == "int"
        lines.append(f"  int w_{name}[TILE];" if integer else f"  real* w_{name} = scratch + at_{name};")
    for i, stage in enumerate(kernel.stages):
        if i < (kernel.tiled_from or 0):
            continue
        arguments = [
            "m",
            *(f"w_{n}" for n in stage.fields),
            *(f"scratch + at_{stage.name}_{n}" for n, _ in stage.scratch),
        ]
        lines.append(f"  tiled::{stage.callee}({', '.join([*arguments, *stage.scalars])});")
        made = [name for name in kernel.copy_after(i) if name not in _made_before(kernel)]
        lines += [f"  if ({name}) {_store(name)}" for name in made]
    lines += [f"  {_store(name)}" for name in kernel.updates if name in (*reals, *ints)]
    return "\n".join([*lines, "}"])


def _before(kernel: Kernel) -> list[str]:
    """Run the bodies of single worlds, and gather what they left for those of the tile."""
    used = {name for stage in kernel.stages[kernel.tiled_from :] for name in stage.fields}
    given = ", ".join(["reinterpret_cast<const ::Header&>(header)", *_names(kernel)[1:]])
    lines = [
        "  const int lane_words = COLUMN_WORDS + scratch_words;",
        "  REAL* const lanes = reinterpret_cast<REAL*>(gathered);",
        "  for (int k = 0; k < number; ++k) {",
        f"    ::{kernel.name}_before({given}, tile[k], lanes + k * lane_words);",
        "  }",
        "  int most = 0;",
        "  for (int k = 0; k < number; ++k) most = w_nefc[k] > most ? w_nefc[k] : most;",
    ]
    for name in kernel.produced:
        if name in _made_before(kernel) & used:
            gathered = FIELD[name].space in ROW_SPACES and FIELD[name].kind == "real"
            assert gathered, f"a tile cannot gather {name!r}"
            lines += [
                f"  real* w_{name} = scratch + at_{name};",
                f"  load_rows(w_{name}, lanes + COLUMN_WORDS + at_{name}, lane_words, number, w_nefc, most, "
                f"{entry_words(FIELD[name])});",
            ]
    return lines


def _store(name: str) -> str:
    field = FIELD[name]
    if field.kind == "int":
        return f"store({name}, w_{name}, tile, number);"
    words = entry_words(field)
    if field.space in ROW_SPACES:
        return f"store_rows({name}, w_{name}, tile, {ADDRESS_OF[field.space]}, w_nefc, number, {words});"
    return f"store({name}, w_{name}, tile, number, {words});"


def _tiles_function(kernel: Kernel) -> str:
    """The function that takes the worlds of a call, tile by tile."""
    reals, _ = _gathered(kernel)
    own = "COLUMN_WORDS + scratch_words" if kernel.tiled_from else "0"
    return "\n".join(
        [
            f"static void {kernel.name}_tiles(const uint64_t* slots) {{",
            *_of_numbers(unpacked(kernel)),
            "#ifndef OWN_TABLES",
            "  if (header.at[REAL_STRIDE] != 0) __builtin_trap();  // the build is for worlds that share a table",
            "#endif",
            "  if (full && (full[0] | full[1] | full[2])) return;",
            "  const Model m = {header, model_ints, {}, 0};  // for its sizes",
            f"  const int gathered = {' + '.join(['0', *(entry_words(FIELD[name]) for name in reals)])};",
            f"  real* scratch = tile_scratch(COLUMN_WORDS + scratch_words + gathered + {own});",
            "  const int count = worlds ? *num_listed : n;",
            "  for (int done = 0; done < count; done += TILE) {",
            "    const int number = count - done < TILE ? count - done : TILE;",
            "    int tile[TILE];",
            "    for (int i = 0; i < TILE; ++i) {",
            "      const int slot = done + (i < number ? i : number - 1);",
            f"      tile[i] = {unit_of(kernel)};",
            "    }",
            f"    {kernel.name}_tile({', '.join(_names(kernel))}, tile, number, scratch);",
            "  }",
            "}",
        ]
    )
