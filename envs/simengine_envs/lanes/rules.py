"""`RULES`: operations of JAX as operations on lanes, with the same bits."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from simengine_envs.lanes.arithmetic import NUMBER_RULES, ONE, REAL, WHOLE, Rule, known, lane_by_lane, suffix
from simengine_envs.lanes.functions import FUNCTION_RULES
from simengine_envs.lanes.graph import Graph
from simengine_envs.lanes.random import RANDOM_RULES
from simengine_envs.lanes.shapes import SHAPE_RULES
from simengine_envs.lanes.values import Lanes, NotInLanes, constant, numbers


def _select(graph: Graph, params: Any, operands: list[Lanes], results: Any) -> list[Lanes]:
    mask, no, *rest = operands
    if mask.dtype != "bool" or len(rest) != 1 or no.keys != rest[0].keys:
        raise NotInLanes
    if no.keys is not None:  # a mask of each key's words
        mask = mask._replace(nodes=mask.nodes[..., None])
    name = "SELECT_64" if no.dtype == "float64" else "SELECT_32"
    found = lane_by_lane(graph, lambda *nodes: graph.operation(name, *nodes), [mask, rest[0], no], no.dtype)
    return [found[0]._replace(keys=no.keys)]


def _converted(graph: Graph, params: Any, operands: list[Lanes], results: Any) -> list[Lanes]:
    before, after = operands[0].dtype, np.dtype(params["new_dtype"]).name
    if before in ("int64", "uint64"):
        return [constant(graph, numbers(graph, operands[0]).astype(after))]
    if before == after or (before in WHOLE and after in WHOLE):
        return [operands[0]._replace(dtype=after)]
    if before == "bool":
        if after not in ONE and after != "float64":
            raise NotInLanes
        if after == "float64":
            one = graph.constant(np.int32(1))
            return lane_by_lane(
                graph, lambda x: graph.operation("I32_F64", graph.operation("AND", x, one)), operands, after
            )
        unit = graph.constant(ONE[after])  # type: ignore[index]
        return lane_by_lane(graph, lambda x: graph.operation("AND", x, unit), operands, after)
    if after == "bool":
        kind = suffix(before)
        zero = graph.constant(np.zeros((), before)[()])
        return lane_by_lane(graph, lambda x: graph.operation(f"NE_{kind}", x, zero), operands, after)
    name = f"{known(REAL | WHOLE, before)}_{known(REAL | WHOLE, after)}"
    if name not in ("I32_F32", "U32_F32", "F32_I32", "I32_F64", "F32_F64", "F64_F32"):
        raise NotInLanes
    return lane_by_lane(graph, lambda x: graph.operation(name, x), operands, after)


def _same_bits(graph: Graph, params: Any, operands: list[Lanes], results: Any) -> list[Lanes]:
    after = np.dtype(params["new_dtype"]).name
    if "bool" in (operands[0].dtype, after) or np.dtype(after).itemsize != np.dtype(operands[0].dtype).itemsize:
        raise NotInLanes
    return [operands[0]._replace(dtype=after)]


def _same(graph: Graph, params: Any, operands: list[Lanes], results: Any) -> list[Lanes]:
    return operands


# ------------------------------------------------------------------------------------------------ sums and the like


def _reduced(make: Callable[[Graph, str, list[Any]], Any]) -> Rule:
    """The numbers of some axes become one, made of the arrays (...) of these numbers."""

    def rule(graph: Graph, params: Any, operands: list[Lanes], results: Any) -> list[Lanes]:
        (value,) = operands
        shift = 0 if value.worlds is None else 1
        if params.get("out_sharding") is not None or (shift and 0 in params["axes"]):
            raise NotInLanes
        axes = [axis - shift for axis in params["axes"]]
        kept = [axis for axis in range(value.nodes.ndim) if axis not in axes]
        shape = [value.nodes.shape[axis] for axis in kept]
        flat = np.transpose(value.nodes, (*kept, *axes)).reshape(*shape, prod(value.nodes.shape[axis] for axis in axes))
        if not flat.shape[-1]:
            raise NotInLanes
        return [make(graph, value.dtype, [value._replace(nodes=flat[..., i]) for i in range(flat.shape[-1])])]

    return rule


def _sum(graph: Graph, dtype: str, parts: list[Lanes]) -> Lanes:
    """The sum in the order of `simengine_envs.sums.sum_of_last`."""
    if dtype not in REAL and dtype not in WHOLE:
        raise NotInLanes
    while len(parts) > 1:
        half = len(parts) // 2
        pairs = [
            NUMBER_RULES["add"](graph, {}, [x, y], None)[0]
            for x, y in zip(parts[:half], parts[half : 2 * half], strict=True)
        ]
        parts = [*pairs, *parts[2 * half :]]
    return parts[0]


def _one_by_one(rule: Rule) -> Callable[[Graph, str, list[Lanes]], Lanes]:
    def make(graph: Graph, dtype: str, parts: list[Lanes]) -> Lanes:
        found = parts[0]
        for part in parts[1:]:
            found = rule(graph, {}, [found, part], None)[0]
        return found

    return make


RULES: dict[str, Rule] = {
    "select_n": _select,
    "convert_element_type": _converted,
    "bitcast_convert_type": _same_bits,
    "copy": _same,
    "copy_p": _same,
    "stop_gradient": _same,
    "reduce_sum": _reduced(_sum),
    "reduce_max": _reduced(_one_by_one(NUMBER_RULES["max"])),
    "reduce_min": _reduced(_one_by_one(NUMBER_RULES["min"])),
    "reduce_and": _reduced(_one_by_one(NUMBER_RULES["and"])),
    "reduce_or": _reduced(_one_by_one(NUMBER_RULES["or"])),
    **NUMBER_RULES,
    **FUNCTION_RULES,
    **SHAPE_RULES,
    **RANDOM_RULES,
}
