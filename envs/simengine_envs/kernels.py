"""`in_few_kernels`: a function of JAX with few kernels on a CPU.

XLA makes a kernel of each group of operations that it fuses. A step of an environment has dozens of such groups with
little work in each. Where more than eight could run at once it wakes threads for them, which takes longer than all of
their work. Here operations on numbers are one kernel, as far as no custom call, loop or the like comes between. XLA
makes a kernel of a function that says so by two attributes. A release that does not know them calls the function.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import jax
from jax.experimental.xla_metadata import set_xla_metadata
from jax.extend.core import Jaxpr, Literal, Var

from simengine_envs.written import for_processor

_ONE_KERNEL = {"xla_cpu_small_call": "true", "inlineable": "false"}
_INSIDE = frozenset(
    "abs add add_any and bitcast_convert_type broadcast_in_dim ceil clamp concatenate convert_element_type cos div eq "
    "exp floor ge gt integer_pow iota is_finite le log logistic lt max min mul ne neg not or reduce_and reduce_max "
    "reduce_min reduce_or rem reshape rev round rsqrt select_n shift_left shift_right_logical sign sin slice sqrt "
    "square squeeze sub tan tanh transpose xor".split()
)
"""Operations inside kernels."""


def in_few_kernels(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function on pytrees of arrays, with few kernels if it is traced for a CPU."""
    if not for_processor():
        return function(*arguments)
    traced, shapes = jax.make_jaxpr(function, return_shape=True)(*arguments)
    results = _evaluated(traced.jaxpr, traced.consts, jax.tree.leaves(arguments))
    return jax.tree.unflatten(jax.tree.structure(shapes), results)


def bound(equation: Any, values: list[Any]) -> list[Any]:
    """Results of an operation as JAX defines it."""
    made = equation.primitive.get_bind_params(equation.params)
    functions, params = made if isinstance(made, tuple) else ((), made)  # JAX before 0.10 gives functions, too
    with equation.ctx.manager:
        found = equation.primitive.bind(*functions, *values, **params)
    return list(found) if equation.primitive.multiple_results else [found]


def _evaluated(jaxpr: Jaxpr, consts: Sequence[Any], arguments: Sequence[Any]) -> list[Any]:
    """The results of a traced function, level by level: first a level's kernel, then what else has all it needs."""
    known = dict(zip(jaxpr.constvars, consts, strict=True)) | dict(zip(jaxpr.invars, arguments, strict=True))
    kernels, others = _levels(jaxpr)
    for level in range(max([*kernels, *others], default=-1) + 1):
        kernel, made = kernels[level], set(_results(kernels[level]))
        later = [others[level], *(own[n] for own in (kernels, others) for n in own if n > level)]
        asked = {*_variables(x for group in later for x in _operands(group)), *_variables(jaxpr.outvars)}
        wanted = [variable for variable in _results(kernel) if variable in asked]
        given = [x for x in dict.fromkeys(_variables(_operands(kernel))) if x not in made]
        if wanted:
            known.update(zip(wanted, _in_one(kernel, given, wanted, [known[x] for x in given]), strict=True))
        _evaluate(others[level], known)
    return [_value(atom, known) for atom in jaxpr.outvars]


def _levels(jaxpr: Jaxpr) -> tuple[defaultdict[int, list[Any]], defaultdict[int, list[Any]]]:
    """Operations inside and outside of kernels, by the number of those outside that come before."""
    levels: dict[Any, int] = {}
    inside, outside = defaultdict[int, list[Any]](list), defaultdict[int, list[Any]](list)
    for equation in jaxpr.eqns:
        level = max((levels.get(x, 0) for x in _variables(equation.invars)), default=0)
        own = equation.primitive.name in _INSIDE
        (inside if own else outside)[level].append(equation)
        levels.update(dict.fromkeys(equation.outvars, level + (not own)))
    return inside, outside


def _in_one(kernel: list[Any], given: list[Any], wanted: list[Any], values: list[Any]) -> list[Any]:
    """Variables that are wanted of operations, as one kernel."""

    def kernel_of(*own: Any) -> list[Any]:
        known = dict(zip(given, own, strict=True))
        _evaluate(kernel, known)
        return [known[variable] for variable in wanted]

    with set_xla_metadata(**_ONE_KERNEL):
        return list(jax.jit(kernel_of)(*values))


def _evaluate(equations: list[Any], known: dict[Any, Any]) -> None:
    for equation in equations:
        results = bound(equation, [_value(atom, known) for atom in equation.invars])
        known.update(zip(equation.outvars, results, strict=True))


def _value(atom: Any, known: dict[Any, Any]) -> Any:
    return atom.val if isinstance(atom, Literal) else known[atom]


def _results(equations: list[Any]) -> list[Any]:
    return [variable for equation in equations for variable in equation.outvars]


def _operands(equations: list[Any]) -> list[Any]:
    return [atom for equation in equations for atom in equation.invars]


def _variables(atoms: Iterable[Any]) -> list[Any]:
    return [atom for atom in atoms if isinstance(atom, Var)]
