"""Does a field agree? The largest of its errors, without those that rounding decides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet

from simengine.check.fields import Compared
from simengine.check.report import FieldResult

# A difference counts as ill-conditioned if it is at most _ROUNDINGS times the effect of rounding the state (each joint
# of a chain rounds again), in at most the fraction _FEW of the states; or at most _HELD times the effect of rounding
# the values that every engine stores between its stages.
_ROUNDINGS = 16.0
_FEW = 0.05
_HELD = 4.0

Errors = list[tuple[int, float, float]]
"""(state, absolute error, relative error) for every state at which a field was compared."""


def judge(
    field: Compared,
    errors: Errors,
    dtype: str,
    kinds: Sequence[str],
    effect: Callable[[int], float],
    held: Callable[[int], float] = lambda state: 0.0,
    elsewhere: AbstractSet[int] = frozenset(),
) -> FieldResult:
    """The largest of a field's errors.

    `effect` gives the effect of rounding a state; `held` that of rounding the values that engines store between stages.
    In the states `elsewhere`, rounding decides in any case.
    """
    tolerance = field.tolerance.of(dtype)
    beyond = [e for e in errors if not e[2] <= tolerance]
    rounded = {state for state, _, relative in beyond if state in elsewhere or relative <= _HELD * held(state)}
    rest = [e for e in beyond if e[0] not in rounded]
    if len(rest) <= max(1.0, _FEW * len(errors)):
        rounded |= {state for state, _, relative in rest if relative <= _ROUNDINGS * effect(state)}
    kept = [e for e in errors if e[0] not in rounded]
    state, _, relative = max(kept, key=lambda e: e[2], default=(-1, 0.0, 0.0))
    return FieldResult(
        stage=field.stage,
        field=field.name,
        states=len(kept),
        ill_conditioned=len(rounded),
        absolute=max((e[1] for e in kept), default=0.0),
        relative=relative,
        tolerance=tolerance,
        worst_state=state,
        worst_kind=kinds[state] if kept else "",
        rounding=None if relative <= tolerance else effect(state),
    )
