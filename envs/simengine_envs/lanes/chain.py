"""`Chain`: a traced function as one custom call, a chain of programs and of the engine's steps."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr

from simengine.xla.chains import on_host, run_chain
from simengine_envs.lanes.evaluation import Evaluation, Physics
from simengine_envs.lanes.graph import Array, Graph
from simengine_envs.lanes.program import Wanted, Writer
from simengine_envs.lanes.values import TYPES, Lanes, NotInLanes, entry
from simengine_envs.written import written_for_chain


def in_chain(function: Callable[..., Any], batched: Callable[..., Any], nought: jax.Array, *arguments: Any) -> Any:
    """Results of a function on pytrees of arrays of worlds, in one call.

    Args:
        function: the function.
        batched: the same function for `vmap`, whose first argument is `nought`.
        nought: what only `batched` needs.
        arguments: its arguments.

    Raises:
        NotInLanes: an operation has no form on lanes, or the function makes no steps.
    """
    leaves, structure = jax.tree.flatten(arguments)
    with written_for_chain():
        # a function of its own, since JAX knows the traced forms of the other one
        traced, shapes = jax.make_jaxpr(lambda *own: function(*own), return_shape=True)(*arguments)
    chain = Chain(traced)

    def other(nought: jax.Array, *own: Any) -> list[Any]:
        return jax.tree.leaves(batched(nought, *jax.tree.unflatten(structure, own)))

    return jax.tree.unflatten(jax.tree.structure(shapes), _as_operation(chain, other)(nought, *leaves))


def _as_operation(chain: Chain, batched: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
    """A chain as a function of JAX. Its derivative is an error."""

    @jax.custom_batching.custom_vmap
    def run(nought: jax.Array, *arrays: Any) -> list[Any]:
        return chain.run(list(arrays))

    @run.def_vmap
    def _(size: int, mapped: list[bool], *arrays: Any) -> tuple[list[Any], list[bool]]:
        results = jax.vmap(batched, [0 if own else None for own in mapped], axis_size=size)(*arrays)
        return results, [True] * len(results)

    return on_host(run)


class Chain:
    """A function as one call, in which a thread computes all of some worlds before it takes others.

    Program k stores the arguments of the engine's call k, which runs next. The last program stores the results. Each
    computes again what it needs of earlier ones. A result may take the place of the argument with its number, as states
    do in loops of steps.

    Args:
        traced: the function, whose arguments are arrays of the same worlds.

    Raises:
        NotInLanes: an operation has no form on lanes, or the function makes no steps.
    """

    def __init__(self, traced: ClosedJaxpr):
        found = Evaluation(traced)
        self._graph = found.graph
        self._physics = {number: found.physics[number] for number in _needed(found)}
        counts = {physics.call.num_worlds for physics in self._physics.values()}
        if len(counts) != 1:
            raise NotInLanes("a function without steps, or with those of several numbers of worlds")
        self._results = [_of_worlds(value, *counts) for value in found.results]
        self._avals = [[v.aval for v in variables] for variables in (traced.jaxpr.invars, traced.jaxpr.outvars)]
        self._stored = [k for k, own in enumerate(self._results) if own.nodes.size and self._argument(k) is None]
        self._given = sorted(self._loads())
        self._places = [number for number in self._stored if self._takes_place(number)]
        self._program = self._written()

    def run(self, arguments: list[Any]) -> list[Any]:
        """The function's results."""
        words = [_words(array) for array in arguments]
        shapes = [self._words_of(number) for number in self._stored]
        places = {self._given.index(number): self._stored.index(number) for number in self._places}
        kinds = [physics.call.number for physics in self._physics.values()]
        made = run_chain(kinds, self._program, [words[number] for number in self._given], shapes, places)
        stored = dict(zip(self._stored, made, strict=True))
        return [self._result(number, stored, arguments) for number in range(len(self._results))]

    def _result(self, number: int, stored: dict[int, Any], arguments: list[Any]) -> Any:
        value = self._results[number]
        if not value.nodes.size:
            return jnp.zeros(value.shape, value.dtype)
        if number not in stored:
            return arguments[self._argument(number)]  # type: ignore[index]
        return stored[number] if value.keys is None else jax.random.wrap_key_data(stored[number], impl=value.keys)

    # ------------------------------------------------------------------------------------------------ arrays

    def _argument(self, result: int) -> int | None:
        """The number of the argument that a result is; None if it is something else.

        An argument with another number would have to be copied in loops, unless it is random keys.
        """
        value = self._results[result]
        nodes = [self._graph.nodes[int(node)] for node in value.nodes.ravel()]
        kind, (source, number, *_) = nodes[0][0], nodes[0][1] if nodes[0][0] == "LOAD" else ("", 0)
        if kind != "LOAD" or source != "ARGUMENT" or not _same_kind(self._avals[0][number], self._avals[1][result]):
            return None
        if number != result and value.keys is None:
            return None
        same = all(node == (*nodes[0][:3], column, value.dtype) for column, node in enumerate(nodes))
        return int(number) if same else None

    def _loads(self) -> set[int]:
        """Numbers of the arguments that programs load."""
        roots = [node for array in self._all_wanted() for node in array.lanes]
        arrays = {known[1] for known in _reached(self._graph, roots) if known[0] == "LOAD"}
        return {number for kind, number, *_ in arrays if kind == "ARGUMENT"}

    def _takes_place(self, number: int) -> bool:
        if number not in self._given or self._results[number].keys is not None:
            return False
        return _same_kind(self._avals[0][number], self._avals[1][number])

    def _words_of(self, number: int) -> jax.ShapeDtypeStruct:
        value = self._results[number]
        return jax.ShapeDtypeStruct(value.shape, jnp.dtype(value.dtype))

    # ------------------------------------------------------------------------------------------------ programs

    def _all_wanted(self) -> list[Wanted]:
        return [array for number in self._physics for array in self._operands(number)] + self._outputs(())

    def _outputs(self, places: Iterable[int]) -> list[Wanted]:
        found = []
        for k, number in enumerate(self._stored):
            value = self._results[number]
            place = ("ARGUMENT", number) if number in places else None
            found.append(Wanted(k, value.nodes.ravel().tolist(), value.dtype, place))
        return found

    def _operands(self, number: int) -> list[Wanted]:
        """What program `number` stores."""
        first = len(self._stored) + sum(len(self._physics[k].operands) for k in self._physics if k < number)
        physics = self._physics[number]
        values = [_of_worlds(value, physics.call.num_worlds) for value in physics.operands]
        return [Wanted(first + k, value.nodes.ravel().tolist(), value.dtype) for k, value in enumerate(values)]

    def _numbers(self) -> dict[Array, int]:
        """Numbers of all arrays that programs load: arguments, then what each call gives."""
        found: list[Array] = [("ARGUMENT", number) for number in self._given]
        for number, physics in self._physics.items():
            outputs = len(physics.call.outputs) + len(physics.call.keep)
            found += [("RESULT", number, k) for k in range(outputs)]
        return {array: number for number, array in enumerate(found)}

    def _written(self) -> np.ndarray:
        """All programs, as `simengine/xla/chain_host.cpp` reads them."""
        writer = Writer(self._graph, self._numbers())
        programs = []
        for number, physics in self._physics.items():
            wanted, mask = self._operands(number), None
            if physics.mask is not None:
                mask = wanted.pop()._replace(lanes=[physics.mask])
            programs.append(writer.of_arguments(wanted, mask))
        programs.append(writer.of_results(self._outputs(self._places)))
        head = [writer.registers, *(len(program) for program in programs)]
        body = [number for program in programs for instruction in program for number in instruction]
        return np.array([*head, *body], np.int32)


def _needed(found: Evaluation) -> list[int]:
    """Numbers of the engine's calls on which results depend, in their order."""
    left, needed = [int(node) for value in found.results for node in value.nodes.ravel()], set[int]()
    while left:
        loads = {known[1] for known in _reached(found.graph, left) if known[0] == "LOAD"}
        new = {array[1] for array in loads if array[0] == "RESULT"} - needed
        needed |= new
        left = [node for number in new for node in _nodes_of(found.physics[number])]
    return sorted(needed)


def _nodes_of(physics: Physics) -> list[int]:
    return [int(node) for value in physics.operands for node in value.nodes.ravel()]


def _reached(graph: Graph, roots: Iterable[int]) -> list[Any]:
    """All nodes on which some depend."""
    seen, stack = set[int](), list(roots)
    while stack:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            name, *operands = graph.nodes[node]
            stack.extend(operands if name not in ("LOAD", "FILL") else ())
    return [graph.nodes[node] for node in seen]


def _of_worlds(value: Lanes, count: int) -> Lanes:
    """A value of `count` worlds, also if it is a constant. Raises NotInLanes for any other."""
    if value.worlds is None and value.shape[:1] == (count,):
        return value._replace(nodes=entry(value, count), worlds=count)
    if value.worlds != count or value.dtype not in TYPES:
        raise NotInLanes(f"a result of shape {value.shape}")
    return value


def _same_kind(one: Any, other: Any) -> bool:
    return bool(one.shape == other.shape and one.dtype == other.dtype)


def _words(array: Any) -> Any:
    return jax.random.key_data(array) if jnp.issubdtype(array.dtype, jax.dtypes.prng_key) else array
