"""How much rounding the state alone changes MuJoCo's own result, to tell a wrong field from an ill-conditioned one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import mujoco
import numpy as np

from simengine.check.oracle import Evaluation, Oracle
from simengine.check.report import FieldResult, relative_error
from simengine.check.trajectory import Trajectory

_DRAWS = 8
_ROUNDED = ("qpos", "qvel", "ctrl")


def with_rounding(
    oracle: Oracle, results: Sequence[FieldResult], evaluations: Sequence[Evaluation], steps: Trajectory, dtype: str
) -> tuple[FieldResult, ...]:
    """The results, those beyond their tolerance with the effect of rounding in their worst state."""

    def rounding(result: FieldResult) -> float:
        if result.stage == "step":
            start = {name: values[result.worst_state] for name, values in steps.before.items()}
            return _effect(lambda state: _stepped(oracle, state, result.field), start, dtype)
        state = evaluations[result.worst_state].state

        def evaluated(changed: dict[str, np.ndarray]) -> np.ndarray | None:
            qpos, qvel, ctrl = (changed[name] for name in _ROUNDED)
            evaluation = oracle.evaluate(state._replace(qpos=qpos, qvel=qvel, ctrl=ctrl))
            return None if evaluation is None else evaluation.fields[result.field]

        return _effect(evaluated, {name: getattr(state, name) for name in _ROUNDED}, dtype)

    return tuple(
        result if result.holds or result.worst_state < 0 else replace(result, rounding=rounding(result))
        for result in results
    )


def _effect(
    function: Callable[[dict[str, np.ndarray]], np.ndarray | None], state: dict[str, np.ndarray], dtype: str
) -> float:
    """Largest relative change of a function's result when each number moves one unit in the last place, up or down."""
    exact, rng, worst = function(state), np.random.default_rng(0), 0.0
    if exact is None:
        return 0.0
    for _ in range(_DRAWS):
        changed = dict(state)
        for name in _ROUNDED:
            unit = np.spacing(np.abs(state[name]).astype(dtype)).astype(np.float64)
            changed[name] = state[name] + unit * rng.choice((-1.0, 1.0), size=unit.shape)
        result = function(changed)
        if result is not None and result.shape == exact.shape:
            worst = max(worst, relative_error(result, exact)[1])
    return worst


def _stepped(oracle: Oracle, state: dict[str, np.ndarray], field: str) -> np.ndarray:
    data = oracle.data
    mujoco.mj_resetData(oracle.mj, data)
    for name, values in state.items():
        getattr(data, name)[:] = values
    mujoco.mj_step(oracle.mj, data)
    return np.array(getattr(data, field))
