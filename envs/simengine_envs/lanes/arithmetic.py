"""Arithmetic and comparisons of JAX as operations on lanes, with the bits that XLA gives them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from simengine_envs.lanes.graph import Graph
from simengine_envs.lanes.values import Lanes, NotInLanes, aligned, numbers

Rule = Callable[[Graph, dict[str, Any], list[Lanes], Any], list[Lanes]]
"""Makes results of a graph, the parameters of an operation, its operands, and the equation's results."""

REAL = {"float32": "F32", "float64": "F64"}
WHOLE = {"int32": "I32", "uint32": "U32"}
ONE = {"float32": np.float32(1), "int32": np.int32(1), "uint32": np.uint32(1)}


def lane_by_lane(graph: Graph, make: Callable[..., int], operands: list[Lanes], dtype: str) -> list[Lanes]:
    """A result of a type, each of whose lanes is made of those of the operands at its place."""
    nodes, count = aligned(graph, tuple(operands))
    made = [make(*map(int, lanes)) for lanes in zip(*(array.ravel() for array in nodes), strict=True)]
    return [Lanes(np.array(made, np.int64).reshape(nodes[0].shape), dtype, count)]


def suffix(dtype: str) -> str:
    """How operations that exist for real and whole numbers end."""
    if dtype in REAL:
        return REAL[dtype]
    if dtype in WHOLE:
        return "I32"
    raise NotInLanes


def _sum_of_two(graph: Graph, params: Any, operands: list[Lanes], results: Any) -> list[Lanes]:
    """A sum. That with an array of constant zeros is the other one, as XLA has it, also where that is -0."""
    one, other = operands
    if _all_zero(graph, other):
        return lane_by_lane(graph, lambda x, _: x, operands, one.dtype)
    if _all_zero(graph, one):
        return lane_by_lane(graph, lambda _, y: y, operands, one.dtype)
    name = f"ADD_{suffix(one.dtype)}"
    return lane_by_lane(graph, lambda x, y: graph.operation(name, x, y), operands, one.dtype)


def _difference(graph: Graph, params: Any, operands: list[Lanes], results: Any) -> list[Lanes]:
    one, other = operands
    if _all_zero(graph, other):
        return lane_by_lane(graph, lambda x, _: x, operands, one.dtype)
    name = f"SUB_{suffix(one.dtype)}"
    return lane_by_lane(graph, lambda x, y: graph.operation(name, x, y), operands, one.dtype)


def _product(graph: Graph, params: Any, operands: list[Lanes], results: Any) -> list[Lanes]:
    """A product. That with 1 or -1 computes nothing or a sign, as XLA has it.

    One with converted booleans is a choice between the other number and 0, unless they were spread over more numbers.
    """
    one, other = operands
    name, choice = f"MUL_{suffix(one.dtype)}", "SELECT_64" if one.dtype == "float64" else "SELECT_32"
    zero = graph.constant(np.zeros((), one.dtype)[()])
    for own, number in ((one, other), (other, one)):
        if _all_are(graph, own, 1):
            return lane_by_lane(graph, lambda x, _: x, [number, own], one.dtype)
        if _all_are(graph, own, -1) and one.dtype in REAL:
            return lane_by_lane(
                graph, lambda x, _: graph.operation(f"NEG_{REAL[one.dtype]}", x), [number, own], one.dtype
            )
        spread = own.spread or own.nodes.size < number.nodes.size
        masks = _masks_of(graph, own)
        if spread and masks is not None and len(np.unique(number.nodes)) < number.nodes.size:
            raise NotInLanes("a product of spread numbers and booleans, which XLA may compute before it spreads them")
        if not spread and masks is not None:
            return lane_by_lane(
                graph, lambda mask, x: graph.operation(choice, mask, x, zero), [masks, number], one.dtype
            )
    return lane_by_lane(graph, lambda x, y: graph.operation(name, x, y), operands, one.dtype)


def _quotient(graph: Graph, params: Any, operands: list[Lanes], results: Any) -> list[Lanes]:
    """A quotient.

    Where all divisors are constants, or those of a smaller array, it is a product with the inverse, as XLA has it.
    """
    one, other = operands
    kind = known(REAL, one.dtype)
    if any(graph.nodes[int(node)][0].startswith("SQRT") for node in other.nodes.ravel()):
        raise NotInLanes("a quotient by a square root, which XLA multiplies by the root's inverse")
    unit = graph.constant(np.ones((), one.dtype)[()])
    if _all_are(graph, other, 1):
        return lane_by_lane(graph, lambda x, _: x, operands, one.dtype)
    if all(len(np.unique(value.nodes)) < one.nodes.size for value in operands):
        raise NotInLanes("a quotient of spread numbers, which XLA may divide before it spreads them")
    spread = other.spread or 1 < np.prod(other.shape) < np.prod(one.shape)
    if spread or (_all_constant(graph, other) and not _all_constant(graph, one)):
        return lane_by_lane(
            graph,
            lambda x, y: graph.operation(f"MUL_{kind}", x, graph.operation(f"DIV_{kind}", unit, y)),
            operands,
            one.dtype,
        )
    return lane_by_lane(graph, lambda x, y: graph.operation(f"DIV_{kind}", x, y), operands, one.dtype)


def _all_constant(graph: Graph, value: Lanes) -> bool:
    return all(graph.is_constant(int(node)) for node in value.nodes.ravel())


def _all_are(graph: Graph, value: Lanes, number: int) -> bool:
    return _all_constant(graph, value) and bool((numbers(graph, value) == number).all())


def _all_zero(graph: Graph, value: Lanes) -> bool:
    return _all_constant(graph, value) and not numbers(graph, value).any()


def _masks_of(graph: Graph, value: Lanes) -> Lanes | None:
    """The booleans of which an array has the numbers 0 or 1; None if it is something else."""
    found = []
    for node in map(int, value.nodes.ravel()):
        name, *operands = graph.nodes[node]
        if name == "I32_F64":
            name, *operands = graph.nodes[operands[0]]
        unit = {graph.constant(one) for kind, one in ONE.items() if kind == value.dtype or value.dtype == "float64"}
        if name != "AND" or operands[1] not in unit:
            return None
        found.append(operands[0])
    return value._replace(nodes=np.array(found, np.int64).reshape(value.nodes.shape), dtype="bool")


def _of_reals(name: str) -> Rule:
    def rule(graph: Graph, params: Any, operands: list[Lanes], results: Any) -> list[Lanes]:
        dtype = operands[0].dtype
        kind = known(REAL, dtype)
        own = "bool" if name == "FINITE" else dtype
        return lane_by_lane(graph, lambda *nodes: graph.operation(f"{name}_{kind}", *nodes), operands, own)

    return rule


def known(table: dict[str, str], dtype: str) -> str:
    """The entry of a type. Raises NotInLanes if there is none."""
    if dtype not in table:
        raise NotInLanes
    return table[dtype]


def _extreme(name: str) -> Rule:
    def rule(graph: Graph, params: Any, operands: list[Lanes], results: Any) -> list[Lanes]:
        dtype = operands[0].dtype
        if dtype == "bool":
            raise NotInLanes
        kind = known(REAL | WHOLE, dtype)
        return lane_by_lane(graph, lambda x, y: graph.operation(f"{name}_{kind}", x, y), operands, dtype)

    return rule


def _comparison(name: str, swapped: bool = False) -> Rule:
    def rule(graph: Graph, params: Any, operands: list[Lanes], results: Any) -> list[Lanes]:
        dtype = operands[0].dtype

        def make(x: int, y: int) -> int:
            if dtype == "bool":
                different = graph.operation("XOR", x, y)
                return different if name == "NE" else graph.operation("NOT", different)
            kind = known(REAL | WHOLE, dtype)
            own = "I32" if name in ("EQ", "NE") and dtype in WHOLE else kind
            return graph.operation(f"{name}_{own}", *((y, x) if swapped else (x, y)))

        if dtype == "bool" and name not in ("EQ", "NE"):
            raise NotInLanes
        return lane_by_lane(graph, make, operands, "bool")

    return rule


def _words(name: str) -> Rule:
    def rule(graph: Graph, params: Any, operands: list[Lanes], results: Any) -> list[Lanes]:
        if operands[0].dtype not in ("bool", *WHOLE):
            raise NotInLanes
        return lane_by_lane(graph, lambda *nodes: graph.operation(name, *nodes), operands, operands[0].dtype)

    return rule


def _negative(graph: Graph, params: Any, operands: list[Lanes], results: Any) -> list[Lanes]:
    dtype = operands[0].dtype
    if dtype in REAL:
        return _of_reals("NEG")(graph, params, operands, results)
    zero, kind = graph.constant(np.int32(0)), suffix(dtype)
    return lane_by_lane(graph, lambda x: graph.operation(f"SUB_{kind}", zero, x), operands, dtype)


def _ceiling(graph: Graph, params: Any, operands: list[Lanes], results: Any) -> list[Lanes]:
    kind = known(REAL, operands[0].dtype)

    def make(x: int) -> int:
        return graph.operation(f"NEG_{kind}", graph.operation(f"FLOOR_{kind}", graph.operation(f"NEG_{kind}", x)))

    return lane_by_lane(graph, make, operands, operands[0].dtype)


def _power(graph: Graph, params: Any, operands: list[Lanes], results: Any) -> list[Lanes]:
    """An integer power by squaring, as JAX lowers it."""
    dtype, power = operands[0].dtype, params.get("y", 2)
    if power < 1 or dtype not in REAL:
        raise NotInLanes
    name = f"MUL_{REAL[dtype]}"

    def make(x: int) -> int:
        made, left = None, power
        while left:
            if left % 2:
                made = x if made is None else graph.operation(name, made, x)
            left //= 2
            x = graph.operation(name, x, x) if left else x
        assert made is not None
        return made

    return lane_by_lane(graph, make, operands, dtype)


def _clamp(graph: Graph, params: Any, operands: list[Lanes], results: Any) -> list[Lanes]:
    low, values, high = operands
    least = _extreme("MAX")(graph, params, [low, values], results)
    return _extreme("MIN")(graph, params, [least[0], high], results)


NUMBER_RULES: dict[str, Rule] = {
    "add": _sum_of_two,
    "add_any": _sum_of_two,
    "sub": _difference,
    "mul": _product,
    "div": _quotient,
    "max": _extreme("MAX"),
    "min": _extreme("MIN"),
    "abs": _of_reals("ABS"),
    "sqrt": _of_reals("SQRT"),
    "floor": _of_reals("FLOOR"),
    "ceil": _ceiling,
    "neg": _negative,
    "square": _power,
    "integer_pow": _power,
    "is_finite": _of_reals("FINITE"),
    "eq": _comparison("EQ"),
    "ne": _comparison("NE"),
    "lt": _comparison("LT"),
    "le": _comparison("LE"),
    "gt": _comparison("LT", swapped=True),
    "ge": _comparison("LE", swapped=True),
    "and": _words("AND"),
    "or": _words("OR"),
    "xor": _words("XOR"),
    "not": _words("NOT"),
    "shift_left": _words("LEFT"),
    "shift_right_logical": _words("RIGHT"),
    "clamp": _clamp,
}
