"""Generated C: the model table's accessors and the constants that Python and the kernels share."""

from __future__ import annotations

import mujoco

from simengine.model.table import INT_OPTIONS, PAIR_TYPES, SIZES, TABLE
from simengine.state.fields import COLUMNS, NUM_CLASSES, NUM_COLUMNS, NUM_SUMS, ROW_CLASSES, STATUS

# The integer header of a model: sizes, nvp, options, then where each table field starts in its blob.
HEADER: tuple[str, ...] = (*SIZES, "nvp", *INT_OPTIONS, *(field.name for field in TABLE))


def constants() -> str:
    """C definitions of the codes that stages share with Python."""
    joint, geom = mujoco.mjtJoint, mujoco.mjtGeom
    values = {
        "JNT_FREE": int(joint.mjJNT_FREE),
        "JNT_SLIDE": int(joint.mjJNT_SLIDE),
        "JNT_HINGE": int(joint.mjJNT_HINGE),
        "GEOM_PLANE": int(geom.mjGEOM_PLANE),
        "NUM_COLUMNS": NUM_COLUMNS,
        "NUM_SUMS": NUM_SUMS,
        "NUM_CLASSES": NUM_CLASSES,
        "COLUMN_TYPE": COLUMNS.index(PAIR_TYPES[0]),
        "COLUMN_CLASS": COLUMNS.index("rows_0"),
        "COLUMN_BAD": COLUMNS.index("bad"),
    }
    lines = [f"#define {name} {value}" for name, value in values.items()]
    lines += [f"#define STATUS_{name.upper()} {code}" for code, name in enumerate(STATUS)]
    bounds = " : ".join(f"(i) == {i} ? {bound}" for i, bound in enumerate(ROW_CLASSES))
    lines.append(f"#define ROW_BOUND(i) ({bounds} : 0x7fffffff)")
    return "\n".join(lines) + "\n"


def model_struct() -> str:
    """C++ struct `Model`: sizes and table fields of one model, read through its header.

    The header is a kernel argument by value, so sizes and offsets are constants of the launch: no load precedes a load.
    """
    lines = [
        f"struct Header {{ int at[{len(HEADER)}]; }};",
        "",
        "struct Model {",
        "  const Header& header;",
        "  const int* ints;",
        "  const real* reals;",
        "  real* column;  // LANES words of the group, for linear algebra",
    ]
    scalars = len(SIZES) + 1 + len(INT_OPTIONS)
    for index, name in enumerate(HEADER[:scalars]):
        lines.append(f"  DEVICE_METHOD int {name}() const {{ return header.at[{index}]; }}")
    for index, field in enumerate(TABLE, start=scalars):
        kind, blob = ("int", "ints") if field.kind == "int" else ("real", "reals")
        lines.append(f"  DEVICE_METHOD const {kind}* {field.name}() const {{ return {blob} + header.at[{index}]; }}")
    lines.append("};")
    return "\n".join(lines) + "\n"
