"""`in_regions`: evaluates a traced function so that XLA makes one kernel on a CPU of all that lies between two calls.

XLA makes a kernel of each group of operations that it fuses, and a kernel takes up to a microsecond to start when its
code is in no cache. A step of an environment has dozens of such groups, and little work in each. Here the operations
between two calls (of the engine, for random numbers, or loops) are a region. A region is a function of its own, which
XLA is told not to inline, but to compile as one kernel, as it does with small loops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental.xla_metadata import set_xla_metadata
from jax.extend.core import Jaxpr, Literal, Var

# Operations that XLA compiles inside such a kernel. All others, custom calls and loops among them, are left outside.
_INSIDE = frozenset(
    "abs acos acosh add add_any and argmax argmin asin asinh atan atan2 atanh bitcast_convert_type broadcast_in_dim "
    "cbrt ceil clamp concatenate convert_element_type copy copy_p cos cosh div dynamic_slice dynamic_update_slice eq "
    "erf erf_inv erfc exp exp2 expand_dims expm1 floor gather ge gt imag integer_pow iota is_finite le log log1p "
    "logistic lt max min mul ne neg nextafter not or pad population_count pow random_unwrap random_wrap real "
    "reduce_and reduce_max reduce_min reduce_or reduce_precision reduce_sum rem reshape rev round rsqrt select_n "
    "shift_left shift_right_arithmetic shift_right_logical sign sin sinh slice sqrt square squeeze stack "
    "stop_gradient sub tan tanh tile transpose xor".split()
)


# Of these, those that cost nothing outside, where they only give an array another shape or type.
_VIEWS = frozenset({"random_unwrap", "random_wrap", "reshape", "squeeze", "expand_dims"})
_AS_KERNEL = {"inlineable": "false", "xla_cpu_small_call": "true"}


def kernels_of_regions() -> bool:
    """Whether this JAX is known to make one kernel of a region."""
    return (0, 10) <= jax.__version_info__ < (0, 12)


def in_regions(
    jaxpr: Jaxpr, consts: Any, arguments: Any, bound: Callable[[Any, list[Any]], list[Any]], nought: jax.Array
) -> list[Any]:
    """The results of a traced function.

    Args:
        jaxpr, consts: the function and its constants.
        arguments: its arguments.
        bound: makes an operation's results of an equation and its operands.
        nought: () uint32, which is zero although the compiler cannot know it.
    """
    known: dict[Any, Any] = dict(zip(jaxpr.constvars, consts, strict=True))
    known.update(zip(jaxpr.invars, arguments, strict=True))

    def value(atom: Any) -> Any:
        return atom.val if isinstance(atom, Literal) else known[atom]

    def evaluate(equations: list[Any]) -> None:
        for equation in equations:
            results = bound(equation, [value(atom) for atom in equation.invars])
            known.update(zip(equation.outvars, results, strict=True))

    for region, calls, wanted in _ordered(jaxpr):
        before, own, after = _without_views(region)
        evaluate(before)
        if own:
            outside = wanted | {atom for equation in after for atom in equation.invars if isinstance(atom, Var)}
            known.update(_region(own, outside, known, bound, nought))
        evaluate([*after, *calls])
    return [value(atom) for atom in jaxpr.outvars]


def _without_views(region: list[Any]) -> tuple[list[Any], list[Any], list[Any]]:
    """The views that a region begins with, what is left of it, and the views that it ends with."""
    made = {variable for equation in region for variable in equation.outvars}
    before, rest = list[Any](), list[Any]()
    for equation in region:
        first = equation.primitive.name in _VIEWS and made.isdisjoint(a for a in equation.invars if isinstance(a, Var))
        made.difference_update(equation.outvars if first else ())
        (before if first else rest).append(equation)
    own, after, used = list[Any](), list[Any](), set[Any]()
    for equation in reversed(rest):
        last = equation.primitive.name in _VIEWS and used.isdisjoint(equation.outvars)
        used.update(() if last else (atom for atom in equation.invars if isinstance(atom, Var)))
        (after if last else own).append(equation)
    return before, own[::-1], after[::-1]


def _region(equations: list[Any], wanted: set[Any], known: dict[Any, Any], bound: Any, nought: jax.Array) -> Any:
    """Results by variable of operations that become one kernel."""
    made = {variable for equation in equations for variable in equation.outvars}
    given = list(dict.fromkeys(a for e in equations for a in e.invars if isinstance(a, Var) and a not in made))
    results = [v for e in equations for v in e.outvars if v in wanted]

    def region(nought: jax.Array, *arguments: Any) -> list[Any]:
        own = dict(zip(given, arguments, strict=True))
        for equation in equations:
            values = [a.val if isinstance(a, Literal) else own[a] for a in equation.invars]
            own.update(zip(equation.outvars, bound(equation, values), strict=True))
        return _of_all([own[variable] for variable in results], arguments, nought)

    # XLA would move constants from here into the region, and leave their arguments without use
    opaque = jax.lax.optimization_barrier((nought, *(known[variable] for variable in given)))
    with set_xla_metadata(**_AS_KERNEL):
        found = jax.jit(region)(*opaque)
    return zip(results, found, strict=True)


def _of_all(results: list[Any], arguments: Any, nought: jax.Array) -> list[Any]:
    """Results that follow from all arguments, as far as the compiler knows, although they are what they were.

    XLA leaves out results of which a program makes no use, and stops the process if a kernel has an argument on which
    none of the others depends.
    """
    for argument in arguments:
        first = _words(argument)
        nought = nought & first[(slice(0, 1),) * first.ndim].reshape(()).astype(jnp.uint32)
    return [_like(_words(result) | nought.astype(_words(result).dtype), result) for result in results]


def _words(array: jax.Array) -> jax.Array:
    """An array's bits as integers; of a boolean one as it is."""
    if jnp.issubdtype(array.dtype, jax.dtypes.prng_key):
        return jax.random.key_data(array)
    if jnp.issubdtype(array.dtype, jnp.floating):
        return jax.lax.bitcast_convert_type(array, f"uint{8 * array.dtype.itemsize}")
    return array


def _like(words: jax.Array, array: jax.Array) -> jax.Array:
    if jnp.issubdtype(array.dtype, jax.dtypes.prng_key):
        return jax.random.wrap_key_data(words, impl=jax.random.key_impl(array))
    return jax.lax.bitcast_convert_type(words, array.dtype) if words.dtype != array.dtype else words


def _ordered(jaxpr: Jaxpr) -> Iterator[tuple[list[Any], list[Any], set[Any]]]:
    """Operations in an order with few regions: those of a region, those that follow it, and what others than it want.

    Operations that make no difference to the results are left out. Each of the others belongs to the latest region
    whose results are early enough.
    """
    first: dict[Any, int] = {}  # of a variable: the first region that may use it
    for equation in jaxpr.eqns:
        begins = max((first.get(atom, 0) for atom in equation.invars if isinstance(atom, Var)), default=0)
        for variable in equation.outvars:
            first[variable] = begins + (not _is_inside(equation))
    last = max(first.values(), default=0)
    ends = {atom: last + 1 for atom in jaxpr.outvars if isinstance(atom, Var)}  # the first region that does use it
    regions: list[list[Any]] = [[] for _ in range(last + 1)]
    calls: list[list[Any]] = [[] for _ in range(last + 1)]  # after each region
    wanted = set(ends)
    for equation in reversed(jaxpr.eqns):
        until = min((ends[variable] for variable in equation.outvars if variable in ends), default=None)
        if until is None:
            continue
        inside = _is_inside(equation)
        at = min(until, last) if inside else until - 1
        (regions if inside else calls)[at].append(equation)
        own = [atom for atom in equation.invars if isinstance(atom, Var)]
        wanted.update(atom for atom in own if not inside or ends.get(atom, at) != at)
        ends.update((atom, min(ends.get(atom, at), at)) for atom in own)
    for region, after in zip(regions, calls, strict=True):
        yield region[::-1], after[::-1], wanted


def _is_inside(equation: Any) -> bool:
    return equation.primitive.name in _INSIDE
