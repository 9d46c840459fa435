"""The arguments of kernels and bodies, as C text.

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

from simengine.kernels.kernel import Kernel
from simengine.physics.stage import Stage
from simengine.state.field import Field
from simengine.state.fields import FIELD

COLUMN_STAGES = {"scan": "NUM_TOTALS", "scan_islands": "NUM_ISLAND_COLUMNS", "scan_pairs": "NUM_PAIR_COLUMNS"}
"""Stages whose unit is a column, and how many there are."""

MODEL_PARAMETERS = ("const GRID_CONSTANT Header header", "const int* model_ints", "const real* model_reals")
RANGE_PARAMETERS = ("const int* worlds", "const int* num_listed", "int begin", "int n", "const int* full")


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


def unpacked(kernel: Kernel, pointer: str = "") -> list[str]:
    """C statements that take the arguments of a kernel from slots. Pointers pass through the function `pointer`."""
    lines = []
    received = parameters(kernel)
    if kernel.unit != "column":
        lines.append("  const Header& header = *reinterpret_cast<const Header*>(slots);")
        lines.append("  slots += sizeof(Header) / 8;")
        received = received[1:]
    for i, parameter in enumerate(received):
        kind, name = parameter.rsplit(" ", 1)
        value = f"{pointer}(({kind})slots[{i}])" if "*" in kind else f"(int)(long long)slots[{i}]"
        lines.append(f"  {parameter} = {value};" if "*" in kind else f"  const int {name} = {value};")
    return lines
