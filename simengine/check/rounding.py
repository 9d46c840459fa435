"""How much rounding the state alone changes MuJoCo's own result, to tell a wrong field from an ill-conditioned one.

Normals of MuJoCo's convex collisions are erratic too, about as much as its tolerance lets them be. So where there are
such collisions, a field is also evaluated with other tolerances. And where corners of meshes touch by chance, any
difference may be.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import mujoco
import numpy as np

from simengine.check.oracle import Oracle
from simengine.check.report import relative_error
from simengine.check.states import STATE_ARRAYS, State

_DRAWS = 8
_ROUNDED = ("qpos", "qvel", "act", "ctrl")
_ENDS = (0.1, 0.25, 0.5, 2.0, 4.0, 10.0)  # times the tolerance at which convex collisions end


class Rounding:
    """Effect of one unit in the last place of a precision.

    Args:
        oracle: MuJoCo on the model.
        dtype: "float32" or "float64".
    """

    def __init__(self, oracle: Oracle, dtype: str):
        self._oracle = oracle
        self._dtype = dtype

    def of_forward(self, state: State, field: str) -> float:
        """Largest relative change of a field of `FORWARD` when the state's numbers move by one unit, up or down;
        infinite where it is not clear what touches."""

        if not self._oracle.is_clear({name: getattr(state, name) for name in STATE_ARRAYS}):
            return np.inf

        def evaluated(changed: Mapping[str, np.ndarray]) -> np.ndarray | None:
            evaluation = self._oracle.evaluate(State(**{**state._asdict(), **changed}))
            return None if evaluation is None else evaluation.fields[field]

        return self._effect(evaluated, {name: getattr(state, name) for name in _ROUNDED})

    def of_step(self, before: Mapping[str, np.ndarray], field: str) -> float:
        """The same for a field of `STEPPED` after one step from `before`."""
        mj, data = self._oracle.mj, self._oracle.data
        if not self._oracle.is_clear(before):
            return np.inf

        def stepped(changed: Mapping[str, np.ndarray]) -> np.ndarray:
            mujoco.mj_resetData(mj, data)
            for name, values in changed.items():
                getattr(data, name)[:] = values
            mujoco.mj_step(mj, data)
            return np.array(getattr(data, field))

        return self._effect(stepped, before)

    def _effect(
        self, function: Callable[[Mapping[str, np.ndarray]], np.ndarray | None], state: Mapping[str, np.ndarray]
    ) -> float:
        exact, rng = function(state), np.random.default_rng(0)
        if exact is None:
            return 0.0
        results = []
        for _ in range(_DRAWS):
            changed = dict(state)
            for name in _ROUNDED:
                unit = np.spacing(np.abs(state[name]).astype(self._dtype)).astype(np.float64)
                changed[name] = state[name] + unit * rng.choice((-1.0, 1.0), size=unit.shape)
            results.append(function(changed))
        option = self._oracle.mj.opt
        tolerance = option.ccd_tolerance
        for factor in _ENDS:
            option.ccd_tolerance = factor * tolerance
            results.append(function(state))
        option.ccd_tolerance = tolerance
        same = [result for result in results if result is not None and result.shape == exact.shape]
        filled = (np.where(np.isnan(result), exact, result) for result in same)
        return max((relative_error(result, exact)[1] for result in filled), default=0.0)
