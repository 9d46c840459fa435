"""The operations of programs of lanes, by name; see `lanes_host.cpp`."""

from __future__ import annotations

_REAL = ("ADD", "SUB", "MUL", "DIV", "MAX", "MIN", "NEG", "ABS", "SQRT", "FLOOR", "SIN", "COS")
_OF_REALS = (*_REAL, "EQ", "NE", "LT", "LE", "FINITE")
_ON_REGISTERS = (
    *(f"{name}_{kind}" for kind in ("F32", "F64") for name in _OF_REALS),
    *(f"{name}_{kind}" for kind in ("I32", "U32") for name in ("LT", "LE", "MAX", "MIN")),
    *("EQ_I32", "NE_I32", "ADD_I32", "SUB_I32", "MUL_I32", "AND", "OR", "XOR", "NOT", "LEFT", "RIGHT"),
    *("SELECT_32", "SELECT_64", "HASH", "EXP_F32", "ERF_INV_F32"),
    *("I32_F32", "U32_F32", "F32_I32", "I32_F64", "F32_F64", "F64_F32"),
)
_MOVES = (
    "LOAD_32",
    "LOAD_64",
    "LOAD_MASK",
    "STORE_32",
    "STORE_64",
    "STORE_MASK",
    "FILL_32",
    "FILL_64",
    "COPY",
    "JUMP",
    "JUMP_IF_NONE",
)
OPERATIONS = {name: number for number, name in enumerate((*_ON_REGISTERS, *_MOVES))}
"""Numbers of the operations. Those that do not only move numbers come first."""


def enumeration() -> str:
    """The operations in C++."""
    names = ", ".join(f"{name} = {number}" for name, number in OPERATIONS.items())
    return f"namespace lanes {{ enum {{ {names}, HIGHEST_OF_REGISTERS = {len(_ON_REGISTERS) - 1} }}; }}"
