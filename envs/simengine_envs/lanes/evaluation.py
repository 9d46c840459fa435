"""`Evaluation`: a traced function as nodes of a graph, and the engine's calls between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal

from simengine.xla.chains import EngineCall, call_of
from simengine_envs.lanes.graph import Graph
from simengine_envs.lanes.rules import RULES
from simengine_envs.lanes.values import TYPES, Lanes, NotInLanes, constant, has_few, loaded

CALLS = ("jit", "pjit", "closed_call", "core_call", "remat2", "checkpoint", "custom_jvp_call", "custom_vjp_call")
"""Operations that call a function of JAX."""


class Physics(NamedTuple):
    """A call of the engine: steps, dynamics, or what follows from masses.

    Attributes:
        call: the call.
        operands: its arguments.
        mask: node of the worlds that it works on; None for all worlds.
    """

    call: EngineCall
    operands: list[Lanes]
    mask: int | None


class Evaluation:
    """A traced function on lanes.

    Attributes:
        graph: its operations.
        physics: calls of the engine, in their order.
        results: what the function returns.

    Raises:
        NotInLanes: an operation has no form on lanes.
    """

    def __init__(self, traced: ClosedJaxpr):
        self.graph = Graph()
        self.physics: list[Physics] = []
        given = [loaded(self.graph, ("ARGUMENT", i), v.aval) for i, v in enumerate(traced.jaxpr.invars)]
        self.results = self._run(traced.jaxpr, traced.consts, given)

    def _run(self, jaxpr: Jaxpr, consts: Sequence[Any], values: Sequence[Lanes]) -> list[Lanes]:
        known: dict[Any, Lanes] = dict(zip(jaxpr.constvars, map(self._constant, consts), strict=True))
        known.update(zip(jaxpr.invars, values, strict=True))

        def value(atom: Any) -> Lanes:
            return self._constant(np.asarray(atom.val, _dtype(atom))) if isinstance(atom, Literal) else known[atom]

        for equation in jaxpr.eqns:
            operands = [value(atom) for atom in equation.invars]
            known.update(zip(equation.outvars, self._results(equation, operands), strict=True))
        return [value(atom) for atom in jaxpr.outvars]

    def _constant(self, array: Any) -> Lanes:
        if isinstance(array, jax.core.Tracer):
            raise NotInLanes("an array of another function")
        return constant(self.graph, array)

    def _results(self, equation: Any, operands: list[Lanes]) -> Sequence[Lanes]:
        name, params = equation.primitive.name, equation.params
        if name in CALLS:
            inner = params.get("call_jaxpr", params.get("jaxpr"))
            closed = isinstance(inner, ClosedJaxpr)
            return self._run(inner.jaxpr if closed else inner, inner.consts if closed else (), operands)
        if name == "custom_vmap_call" and "call" in params:
            return self._called(params["call"], operands)
        if name not in RULES or not all(has_few(variable.aval.shape) for variable in equation.outvars):
            raise NotInLanes(f"the operation {name}")
        try:
            found = RULES[name](self.graph, params, operands, equation.outvars)
        except NotInLanes as error:
            raise NotInLanes(f"the operation {name} ({error or 'of these operands'})") from error
        for value in found:
            if value.worlds is not None and value.dtype not in TYPES:
                raise NotInLanes(f"the operation {name} on numbers of type {value.dtype}")
        spread = name == "broadcast_in_dim" and found[0].nodes.size > operands[0].nodes.size
        spread |= name == "convert_element_type" and operands[0].dtype == "bool" and operands[0].spread
        return [value._replace(spread=spread) for value in found]

    def _called(self, inner: ClosedJaxpr, operands: list[Lanes]) -> list[Lanes]:
        """Results of a call of the engine, those of worlds that it leaves out zero."""
        equations = inner.jaxpr.eqns
        params = equations[0].params if len(equations) == 1 else {}
        call = call_of(params)
        if call is None:
            raise NotInLanes("a call other than those of the engine")
        mask = self._mask(operands[-1]) if call.chooses else None
        self.physics.append(Physics(call, operands, mask))
        number = len(self.physics) - 1
        found = [loaded(self.graph, ("RESULT", number, i), v.aval) for i, v in enumerate(inner.jaxpr.outvars)]
        return [value if mask is None else self._chosen(mask, value) for value in found]

    def _mask(self, worlds: Lanes) -> int:
        """The mask of which numbers 0 and 1 say which worlds a call works on."""
        (node,) = np.unique(np.broadcast_to(worlds.nodes, worlds.nodes.shape))
        one = self.graph.constant(np.int32(1))
        known = self.graph.nodes[int(node)]
        if known[0] == "AND" and known[2] == one:
            return int(known[1])
        return self.graph.operation("NE_I32", int(node), self.graph.constant(np.int32(0)))

    def _chosen(self, mask: int, value: Lanes) -> Lanes:
        zero = self.graph.constant(np.zeros((), value.dtype)[()])
        name = "SELECT_64" if value.dtype == "float64" else "SELECT_32"
        nodes = [self.graph.operation(name, mask, int(node), zero) for node in value.nodes.ravel()]
        return value._replace(nodes=np.array(nodes, np.int64).reshape(value.nodes.shape))


def _dtype(literal: Literal) -> Any:
    aval: Any = literal.aval
    return aval.dtype
