"""`rounded`: a function of JAX whose results have the same bits whatever the shapes of its arrays.

XLA chooses by shape how it joins operations. Three things then change the last bit of a number of one world with the
number of all worlds: the order of a sum, whether a product and a sum are one rounding or two, and whether two constants
are added to each other first. Here sums have one order, and every result of arithmetic is rounded by itself. That costs
an integer operation for each, which XLA fuses with its neighbours.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal

from simengine.xla import host_calls
from simengine_envs.lanes.chain import in_chain
from simengine_envs.lanes.values import NotInLanes
from simengine_envs.sums import sum_of_last
from simengine_envs.written import for_processor

_ARITHMETIC = ("add", "sub", "add_any", "mul", "div", "square", "integer_pow")
_EXACT = (*_ARITHMETIC, "convert_element_type", "broadcast_in_dim", "reshape", "squeeze")
_MOST_KNOWN = 64  # numbers of a result that is computed when a function is traced
_NUMBERS_OF_A_THUNK = 128  # numbers for which XLA finds their parts while it makes and runs one kernel more
_CALLS = ("jit", "pjit", "closed_call", "core_call", "remat2", "checkpoint", "custom_jvp_call", "custom_vjp_call")


def rounded(function: Callable[..., Any], nought: jax.Array, *arguments: Any) -> Any:
    """Call a function on pytrees of arrays.

    What custom calls compute is left as it is.

    Args:
        function: the function.
        nought: () uint32, which is zero although the compiler cannot know it; see `unknown_zero`.
        arguments: its arguments.
    """

    def by_xla(nought: jax.Array, *own: Any) -> Any:
        traced, shapes = jax.make_jaxpr(function, return_shape=True)(*own)
        results = _Evaluation(nought).run(traced.jaxpr, traced.consts, jax.tree.leaves(own))
        return jax.tree.unflatten(jax.tree.structure(shapes), results)

    if for_processor() and host_calls.calls_exist():
        try:
            return in_chain(function, by_xla, nought, *arguments)
        except NotInLanes:
            pass
    return by_xla(nought, *arguments)


def unknown_zero(keys: jax.Array) -> jax.Array:
    """A zero that follows from random keys (n,), () uint32: the square of an integer leaves 0, 1, 2 or 4 modulo 7.

    A compiler must not know that it has two values at most, since it would then make code for each.
    """
    half = jax.random.key_data(keys[0]).ravel()[-1] >> 16  # whose square fits 32 bits
    rest = half * half % 7
    return rest * (rest - 1) * (rest - 2) * (rest - 4)


class _Evaluation:
    """Evaluates the operations of a traced function one after another."""

    def __init__(self, nought: jax.Array):
        self._nought = nought

    def run(self, jaxpr: Jaxpr, consts: Any, arguments: Any) -> list[Any]:
        """The results of a traced function."""
        known: dict[Any, Any] = {}
        known.update(zip(jaxpr.constvars, consts, strict=True))
        known.update(zip(jaxpr.invars, arguments, strict=True))

        def value(atom: Any) -> Any:
            return atom.val if isinstance(atom, Literal) else known[atom]

        for equation in jaxpr.eqns:
            results = self._apply(equation, [value(atom) for atom in equation.invars])
            known.update(zip(equation.outvars, results, strict=True))
        return [value(atom) for atom in jaxpr.outvars]

    def _apply(self, equation: Any, values: list[Any]) -> list[Any]:
        name, params = equation.primitive.name, equation.params
        if _known(equation, values):
            with jax.ensure_compile_time_eval():
                return _bound(equation, values)
        if name in _CALLS:
            inner = params.get("call_jaxpr", params.get("jaxpr"))
            return self._call(inner, values)
        if name == "cond":
            branches = [lambda *own, inner=inner: self._call(inner, own) for inner in params["branches"]]
            results: list[Any] = jax.lax.switch(values[0], branches, *values[1:])
            return results
        if name in ("while", "scan"):
            return self._loop(name, params, values)
        if name == "concatenate" and _worth_a_call(values, params["dimension"]):
            return [host_calls.joined(values)]
        if jnp.issubdtype(equation.outvars[0].aval.dtype, jnp.floating):
            if name == "reduce_sum":
                return [_sum(values[0], params["axes"])]
            if name == "dot_general":
                return [self._product(*values, **params)]
            # XLA for a CPU makes one exponential of a product of several
            if name in _ARITHMETIC or (name == "exp" and for_processor()):
                return [self._alone(_bound(equation, values)[0])]
        return _bound(equation, values)

    def _call(self, inner: Any, values: Any) -> list[Any]:
        closed = isinstance(inner, ClosedJaxpr)
        return self.run(inner.jaxpr if closed else inner, inner.consts if closed else (), values)

    def _loop(self, name: str, params: dict[str, Any], values: list[Any]) -> list[Any]:
        if name == "while":
            first, second = params["cond_nconsts"], params["body_nconsts"]
            of_test, of_body = values[:first], values[first : first + second]
            return list(
                jax.lax.while_loop(
                    lambda carry: self._call(params["cond_jaxpr"], [*of_test, *carry])[0],
                    lambda carry: tuple(self._call(params["body_jaxpr"], [*of_body, *carry])),
                    tuple(values[first + second :]),
                )
            )
        first, number = params["num_consts"], params["num_carry"]

        def body(carry: Any, row: Any) -> tuple[Any, Any]:
            results = self._call(params["jaxpr"], [*values[:first], *carry, *row])
            return tuple(results[:number]), tuple(results[number:])

        start, rows = tuple(values[first : first + number]), tuple(values[first + number :])
        options = {key: params[key] for key in ("length", "reverse", "unroll")}
        last, stacked = jax.lax.scan(body, start, rows, **options)
        return [*last, *stacked]

    def _alone(self, result: jax.Array) -> jax.Array:
        """A result that the compiler cannot join with what follows, since an operation on its bits comes between.

        A second such operation must not undo it, as an exclusive or does.
        """
        words = {2: jnp.uint16, 4: jnp.uint32, 8: jnp.uint64}[result.dtype.itemsize]
        bits = jax.lax.bitcast_convert_type(result, words) | self._nought.astype(words)
        return jax.lax.bitcast_convert_type(bits, result.dtype)

    def _product(self, left: Any, right: Any, *, dimension_numbers: Any, preferred_element_type: Any, **_: Any) -> Any:
        """A product of matrices as products of numbers and sums in one order."""
        (left_sum, right_sum), (left_batch, right_batch) = dimension_numbers
        sides: list[Any] = []
        for side, batch, summed in ((left, left_batch, left_sum), (right, right_batch, right_sum)):
            free = [axis for axis in range(side.ndim) if axis not in (*batch, *summed)]
            shape = [[side.shape[axis] for axis in axes] for axes in (batch, free, summed)]
            sides.append((jnp.transpose(side, (*batch, *free, *summed)), *shape))
        (one, batched, rows, summed), (other, _, columns, _) = sides
        one = one.reshape(*batched, *rows, *(1,) * len(columns), prod(summed))
        other = other.reshape(*batched, *(1,) * len(rows), *columns, prod(summed))
        kind = preferred_element_type or jnp.result_type(one, other)
        return sum_of_last(self._alone(one.astype(kind) * other.astype(kind)))


def _known(equation: Any, values: list[Any]) -> bool:
    """Whether the result follows from constants alone, and has the same bits wherever it is computed.

    Left to the compiler, it would be a kernel of its own, since `_Evaluation._alone` hides that it is constant. That
    matters on a CPU only. On a GPU each would be compiled by itself, for longer than it ever takes.
    """
    if (
        not for_processor()
        or equation.primitive.name not in _EXACT
        or any(isinstance(value, jax.core.Tracer) for value in values)
    ):
        return False
    return bool(equation.outvars[0].aval.size <= _MOST_KNOWN)


def _worth_a_call(parts: list[Any], axis: int) -> bool:
    """Whether arrays are joined by a call. XLA looks for the part of each number, but need not make the parts first."""
    last = parts[0].ndim - 1
    if axis != last or not for_processor() or not host_calls.calls_exist():
        return False
    return sum(part.size for part in parts) > _NUMBERS_OF_A_THUNK * (len(parts) + 1)


def _bound(equation: Any, values: list[Any]) -> list[Any]:
    """Results of an operation as JAX defines it."""
    made = equation.primitive.get_bind_params(equation.params)
    functions, params = made if isinstance(made, tuple) else ((), made)  # JAX before 0.10 gives functions, too
    with equation.ctx.manager:
        found = equation.primitive.bind(*functions, *values, **params)
    results = list(found) if equation.primitive.multiple_results else [found]
    # JAX keeps constants of NumPy in the precision of their first use, also when 64-bit numbers come into use later
    return [_of_type(result, variable.aval) for result, variable in zip(results, equation.outvars, strict=True)]


def _of_type(result: Any, expected: Any) -> Any:
    known = getattr(expected, "dtype", None)
    return result if known is None or result.dtype == known else result.astype(known)


def _sum(values: jax.Array, axes: tuple[int, ...]) -> jax.Array:
    kept = [axis for axis in range(values.ndim) if axis not in axes]
    shape = [[values.shape[axis] for axis in some] for some in (kept, axes)]
    return sum_of_last(jnp.transpose(values, (*kept, *axes)).reshape(*shape[0], prod(shape[1])))
