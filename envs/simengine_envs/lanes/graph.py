"""`Graph`: operations on lanes, each of them once. A lane is one number of every world."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Node = tuple[Any, ...]
Array = tuple[Any, ...]
"""An array that a program loads: ("ARGUMENT", number), or ("RESULT", number of a call of steps, number)."""

_TYPES: dict[str, type[Any]] = {"F32": np.float32, "F64": np.float64, "I32": np.int32, "U32": np.uint32}
_ARITHMETIC: dict[str, Callable[..., Any]] = {
    "ADD": np.add,
    "SUB": np.subtract,
    "MUL": np.multiply,
    "DIV": np.divide,
    "NEG": np.negative,
    "ABS": np.abs,
    "EQ": np.equal,
    "NE": np.not_equal,
    "LT": np.less,
    "LE": np.less_equal,
    "FINITE": np.isfinite,
}
_WORDS: dict[str, Callable[..., Any]] = {
    "AND": np.bitwise_and,
    "OR": np.bitwise_or,
    "XOR": np.bitwise_xor,
    "NOT": np.bitwise_not,
}
_CONVERSIONS = ("I32_F32", "U32_F32", "I32_F64", "F32_F64", "F64_F32")
_WITH_ITSELF = {"EQ_I32": True, "LE_I32": True, "LE_U32": True, "NE_I32": False, "LT_I32": False, "LT_U32": False}
_ALL = 0xFFFFFFFF  # a mask that is true


class Graph:
    """Nodes by number. Operands of a node have smaller numbers.

    A node is a constant ("FILL", bytes, bits), a column of an array ("LOAD", array, columns, column), the second word
    of a hash ("SECOND", node), or an operation with its operands. A node is made once, and operations on constants are
    constants.

    Attributes:
        nodes: the nodes.
        sizes: bytes of a number of each node, 4 or 8. Booleans are masks of 4.
    """

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.sizes: list[int] = []
        self._known: dict[Node, int] = {}

    def _add(self, node: Node, size: int) -> int:
        found = self._known.get(node)
        if found is None:
            found = self._known[node] = len(self.nodes)
            self.nodes.append(node)
            self.sizes.append(size)
        return found

    def constant(self, value: Any) -> int:
        """A number of NumPy in all worlds."""
        if value.dtype == np.bool_:
            return self._add(("FILL", 4, _ALL if value else 0), 4)
        bits = int.from_bytes(value.tobytes(), "little")
        return self._add(("FILL", value.dtype.itemsize, bits), value.dtype.itemsize)

    def load(self, array: Array, columns: int, column: int, dtype: str) -> int:
        """A column of an array."""
        return self._add(("LOAD", array, columns, column, dtype), 8 if dtype == "float64" else 4)

    def operation(self, name: str, *operands: int) -> int:
        """An operation of `simengine.xla.lanes`."""
        if name.startswith("SELECT") and (operands[1] == operands[2] or self.is_constant(operands[0])):
            return operands[1 if self.nodes[operands[0]] == ("FILL", 4, _ALL) else 2]
        if name in _WITH_ITSELF and operands[0] == operands[1]:
            return self.constant(np.bool_(_WITH_ITSELF[name]))
        if all(self.is_constant(operand) for operand in operands):
            folded = self._folded(name, operands)
            if folded is not None:
                return folded
        masks = "EQ_F64", "NE_F64", "LT_F64", "LE_F64", "FINITE_F64"
        size = 8 if name.endswith(("F64", "_64")) and name not in masks else 4
        return self._add((name, *operands), size)

    def hashed(self, *operands: int) -> tuple[int, int]:
        """Two words hashed under a key of two words, the key first."""
        first = self.operation("HASH", *operands)
        return first, self._add(("SECOND", first), 4)

    def is_constant(self, node: int) -> bool:
        """Whether a node is a constant."""
        return bool(self.nodes[node][0] == "FILL")

    def number(self, node: int, dtype: Any) -> Any:
        """The number of a constant."""
        _, size, bits = self.nodes[node]
        if np.dtype(dtype) == np.bool_:
            return np.bool_(bits)
        return np.frombuffer(bits.to_bytes(size, "little"), dtype)[0]

    def _folded(self, name: str, operands: tuple[int, ...]) -> int | None:
        """An operation on constants; None if it is left to the program."""
        with np.errstate(all="ignore"):
            if name in _WORDS:
                return self.constant(_WORDS[name](*(self.number(operand, np.uint32) for operand in operands)))
            if name in _CONVERSIONS:
                before, after = (_TYPES[kind] for kind in name.split("_"))
                return self.constant(after(self.number(operands[0], before)))
            base, _, kind = name.rpartition("_")
            if base not in _ARITHMETIC or kind not in _TYPES:
                return None
            return self.constant(_ARITHMETIC[base](*(self.number(operand, _TYPES[kind]) for operand in operands)))
