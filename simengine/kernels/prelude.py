"""Generated C: the model table's accessors and the constants that Python and the kernels share."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

import mujoco

from simengine.kernels.kernel import Kernel
from simengine.model import gravcomp
from simengine.model.blob import HEADER, HEADER_FIELDS, HEADER_REALS, HEADER_SCALARS, field_size
from simengine.model.pair_types import PAIR_TYPES, PAIRS, PairType
from simengine.model.pairs import POLYTOPE_WORDS
from simengine.model.sensors import CONTACT_REDUCTIONS, MAX_SENSOR_DIM, SENSORS, sensor_code
from simengine.model.table import TABLE_BY_NAME
from simengine.state.fields import (
    COLUMNS,
    NUM_CLASSES,
    NUM_COLUMNS,
    NUM_TOTALS,
    PROGRESS,
    ROW_CLASSES,
    WORLD_ARENAS,
    WORLD_STATUS,
)
from simengine.state.island_fields import (
    FACTOR_SIDE,
    HUGE_ISLANDS,
    ISLAND_CLASSES,
    ISLAND_COLUMNS,
    ISLAND_RECORD,
    LARGE_ISLANDS,
    MOST_BLOCKS_OF_FACTOR,
    MOST_FACTORED_BLOCKS,
    MOST_LARGE_DOFS,
    NUM_ISLAND_CLASSES,
    RECORD_BLOCKS,
    RECORD_ROWS,
    USUAL_BLOCKS_OF_ROW,
)
from simengine.state.pair_fields import MAX_NEIGHBOURS, PAIR_COLUMNS, PAIR_SPARE, PAIRS_A_SLICE

_GEOMS = ("plane", "hfield", "sphere", "capsule", "ellipsoid", "cylinder", "box", "mesh")


@cache
def constants() -> str:
    """C definitions of the codes that stages share with Python."""
    joint, geom, row = mujoco.mjtJoint, mujoco.mjtGeom, mujoco.mjtConstraint
    values = {
        "JNT_FREE": int(joint.mjJNT_FREE),
        "JNT_BALL": int(joint.mjJNT_BALL),
        "JNT_SLIDE": int(joint.mjJNT_SLIDE),
        "JNT_HINGE": int(joint.mjJNT_HINGE),
        **{f"GEOM_{name.upper()}": int(getattr(geom, f"mjGEOM_{name.upper()}")) for name in _GEOMS},
        "SOLVER_PGS": int(mujoco.mjtSolver.mjSOL_PGS),
        "SOLVER_NEWTON": int(mujoco.mjtSolver.mjSOL_NEWTON),
        **{name.replace("mjCNSTR_", "ROW_"): int(code) for name, code in row.__members__.items()},
        **{name.replace("mjEQ_", "EQ_"): int(code) for name, code in mujoco.mjtEq.__members__.items()},
        "CONE_ELLIPTIC": int(mujoco.mjtCone.mjCONE_ELLIPTIC),
        "GRAVCOMP_PASSIVE": gravcomp.PASSIVE,
        "GRAVCOMP_ACTUATOR": gravcomp.ACTUATOR,
        "GRAVCOMP_LIMITED": gravcomp.LIMITED,
        "REAL_STRIDE": HEADER.index("real_stride"),
        "NUM_COLUMNS": NUM_COLUMNS,
        "NUM_TOTALS": NUM_TOTALS,
        "NUM_ARENAS": len(WORLD_ARENAS),
        "COLUMN_ROWS": COLUMNS.index("nefc"),
        "NUM_CLASSES": NUM_CLASSES,
        "COLUMN_TYPE": COLUMNS.index(PAIR_TYPES[0]),
        "COLUMN_CLASS": COLUMNS.index("rows_0"),
        "COLUMN_BOUNDED": COLUMNS.index("rows_bounded"),
        "COLUMN_BAD": COLUMNS.index("bad"),
        "NUM_ISLAND_COLUMNS": len(ISLAND_COLUMNS),
        "NUM_ISLAND_CLASSES": NUM_ISLAND_CLASSES,
        "COLUMN_ISLANDS": ISLAND_COLUMNS.index("islands"),
        "PROGRESS_ISLANDS": PROGRESS.index("islands_passed"),
        "COLUMN_ISLAND_M": ISLAND_COLUMNS.index("island_M"),
        "COLUMN_ISLAND_J": ISLAND_COLUMNS.index("island_J"),
        "NUM_PAIR_COLUMNS": len(PAIR_COLUMNS),
        "PAIR_SPARE": PAIR_SPARE,
        "POLYTOPE_WORDS": POLYTOPE_WORDS,
        "MAX_NEIGHBOURS": MAX_NEIGHBOURS,
        "PAIRS_A_SLICE": PAIRS_A_SLICE,
        "LIGHT_TYPES": sum(1 << code for code, pair in enumerate(PAIRS) if not pair.heavy),
        "COLUMN_ISLAND_H": ISLAND_COLUMNS.index("island_H"),
        "LARGE_ISLANDS": LARGE_ISLANDS,
        "HUGE_ISLANDS": HUGE_ISLANDS,
        "MOST_LARGE_DOFS": MOST_LARGE_DOFS,
        "FACTOR_SIDE": FACTOR_SIDE,
        "MOST_FACTORED_BLOCKS": MOST_FACTORED_BLOCKS,
        "MOST_BLOCKS_OF_FACTOR": MOST_BLOCKS_OF_FACTOR,
        "USUAL_BLOCKS_OF_ROW": USUAL_BLOCKS_OF_ROW,
        "ISLAND_RECORD": ISLAND_RECORD,
        "RECORD_ROWS": RECORD_ROWS,
        "RECORD_BLOCKS": RECORD_BLOCKS,
        "DATATYPE_REAL": int(mujoco.mjtDataType.mjDATATYPE_REAL),
        "DATATYPE_POSITIVE": int(mujoco.mjtDataType.mjDATATYPE_POSITIVE),
        **{f"REDUCE_{name}": code for code, name in enumerate(CONTACT_REDUCTIONS)},
        "MAX_SENSOR_DIM": MAX_SENSOR_DIM,
        **{f"SENS_{name}": sensor_code(name) for names in SENSORS.values() for name in names},
    }
    for enum in ("mjtTrn", "mjtDyn", "mjtGain", "mjtBias"):
        codes = getattr(mujoco, enum).__members__.items()
        values |= {name.removeprefix("mj"): int(code) for name, code in codes}
    lines = [f"#define {name} {value}" for name, value in values.items()]
    lines += [f"#define STATUS_{name.upper()} {code}" for code, name in enumerate(WORLD_STATUS)]
    for code, pair in enumerate(PAIRS):
        lines += [f"#define TYPE_{pair.name.upper()} {code}", f"#define MAX_{pair.name.upper()} {pair.slots}"]
    lines.append(f"#define MAX_LIGHT_CONTACTS {max(pair.slots for pair in PAIRS if not pair.heavy)}")
    lines.append(f"#define MAX_PLAIN_CONTACTS {max(pair.slots for pair in PAIRS if pair.plain or not pair.heavy)}")
    lines.append(f"#define MAX_CONTACTS {max(pair.slots for pair in PAIRS if not pair.shared)}")
    for name, classes in (("ROW_BOUND", ROW_CLASSES), ("ISLAND_BOUND", ISLAND_CLASSES)):
        bounds = " : ".join(f"(i) == {i} ? {bound}" for i, bound in enumerate(classes))
        lines.append(f"#define {name}(i) ({bounds} : 0x7fffffff)")
    return "\n".join(lines) + "\n"


def collide_switch(name: str, pairs: Iterable[PairType]) -> str:
    """C++ function that finds the contacts of a pair of any of these types, except those whose work the lanes share."""
    pairs = [pair for pair in pairs if not pair.shared]
    lines = [f"DEVICE int {name}(int type, const Pair& pair, real margin, Contact* out) {{", "  switch (type) {"]
    lines += [f"    case TYPE_{pair.name.upper()}: return collide_{pair.name}(pair, margin, out);" for pair in pairs]
    return "\n".join([*lines, "    default: return 0;", "  }", "}"]) + "\n"


def model_struct(kernel: Kernel) -> str:
    """C++ struct `Model`: sizes and table fields of one model, read through its header.

    The header is a kernel argument by value, so sizes and offsets are constants of the launch, and a table field takes
    one load. In kernels whose unit is an island, nv is that of the island, so that a solver works on it as on a world.
    In kernels over worlds with two rows of a matrix in each lane, nvp is a constant. If contacts may have their own
    parameters, the accessors of candidate pairs return those.
    """
    return _model_struct(kernel.on_islands, kernel.unit == "slice", kernel.matrix_rows, tuple(kernel.parameters))


@cache
def _model_struct(island: bool, of_slice: bool, matrix_rows: int, parameters: tuple[str, ...]) -> str:
    sizes = {"nvp": str(matrix_rows)} if matrix_rows else {}
    if island:
        sizes = {"nv": "island_nv", "nvp": "(island_nv + 3) & ~3"}
    lines = [
        f"struct alignas(8) Header {{ int at[{len(HEADER)}]; alignas(8) REAL value[{HEADER_REALS}]; }};",
        "",
        "struct Model {",
        "  const Header& header;",
        "  const int* ints;",
        "  Numbers reals;",
        "  real* column;  // COLUMN_WORDS of the group, for linear algebra",
    ]
    if island:
        at = HEADER.index("nv")
        lines += ["  int island_nv;", f"  DEVICE_METHOD int world_nv() const {{ return header.at[{at}]; }}"]
    if of_slice:
        lines.append("  int slice_first, slice_number;  // pairs of the world")
    own = {name.replace("contact_", "cand_"): name for name in parameters}
    kinds = {name: "int" if TABLE_BY_NAME[name].kind == "int" else "real" for name in HEADER[len(HEADER_SCALARS) :]}
    lines += [f"  const {kinds[name]}* {field};" for name, field in own.items()]
    for index, name in enumerate(HEADER[: len(HEADER_SCALARS)]):
        value = sizes.get(name, f"header.at[{index}]")
        lines.append(f"  DEVICE_METHOD int {name}() const {{ return {value}; }}")
    for index, (name, kind) in enumerate(kinds.items(), start=len(HEADER_SCALARS)):
        result, value = f"Table<{kind}>", f"table_at({kind}s, header.at[{index}])"
        if name in own:
            result, value = f"const {kind}*", f"{own[name]} ? {own[name]} : {kind}s + header.at[{index}]"
        lines.append(f"  DEVICE_METHOD {result} {name}() const {{ return {value}; }}")
    at = 0
    for field in HEADER_FIELDS:
        lines.append(f"  DEVICE_METHOD HeaderTable {field.name}() const {{ return {{header.value + {at}}}; }}")
        at += field_size(field)
    lines.append("};")
    return "\n".join(lines) + "\n"
