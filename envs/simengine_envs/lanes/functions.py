"""Functions of real numbers as operations on lanes, with the bits of XLA's kernels on a CPU."""

from __future__ import annotations

from typing import Any

from simengine_envs.lanes.arithmetic import REAL, Rule, known, lane_by_lane
from simengine_envs.lanes.graph import Graph
from simengine_envs.lanes.values import Lanes, NotInLanes


def _of_vectors(name: str) -> Rule:
    """A function that has a form for float32 only."""

    def rule(graph: Graph, params: Any, operands: list[Lanes], results: Any) -> list[Lanes]:
        if operands[0].dtype != "float32":
            raise NotInLanes(f"{name} of {operands[0].dtype}")
        return lane_by_lane(graph, lambda x: graph.operation(f"{name}_F32", x), operands, "float32")

    return rule


def _of_library(name: str) -> Rule:
    def rule(graph: Graph, params: Any, operands: list[Lanes], results: Any) -> list[Lanes]:
        kind = known(REAL, operands[0].dtype)
        return lane_by_lane(graph, lambda x: graph.operation(f"{name}_{kind}", x), operands, operands[0].dtype)

    return rule


FUNCTION_RULES: dict[str, Rule] = {
    "exp": _of_vectors("EXP"),
    "erf_inv": _of_vectors("ERF_INV"),
    "sin": _of_library("SIN"),
    "cos": _of_library("COS"),
}
