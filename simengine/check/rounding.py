"""How much rounding changes MuJoCo's own result, to distinguish a wrong field from an ill-conditioned one.

Two things are rounded: the state, and the values that every engine stores between its stages (`simengine.check.held`).
The normals of MuJoCo's convex collisions also vary, by about as much as its tolerance permits, so fields are also
evaluated with other tolerances. Where rounding decides whether corners of meshes touch, or which features do, any
difference is possible.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import mujoco
import numpy as np

from simengine.check.held import Terms, Unit, forward_with_rounded
from simengine.check.oracle import Oracle, collect, dense_jacobian
from simengine.check.report import relative_error
from simengine.check.states import STATE_ARRAYS, State

_DRAWS = 8
_ROUNDED = ("qpos", "qvel", "act", "ctrl")
_UNITS = 4.0  # error of the poses of bodies at the end of a chain, in units in the last place
_ENDS = (0.1, 0.25, 0.5, 2.0, 4.0, 10.0)  # factors on the tolerance of convex collisions


class Rounding:
    """Effect of one unit in the last place of a precision on fields of MuJoCo.

    Args:
        oracle: MuJoCo on the model.
        dtype: "float32" or "float64".
    """

    def __init__(self, oracle: Oracle, dtype: str):
        self._oracle = oracle
        self._dtype = dtype
        self._held: dict[int, tuple[State, dict[str, float], bool]] = {}

    def of_held(self, state: State, field: str) -> float:
        """Largest relative change of a field of `FORWARD` when the values stored between stages move by one unit, up or
        down, while the same geoms touch."""
        return self._of_held(state)[0].get(field, 0.0)

    def of_forward(self, state: State, field: str) -> float:
        """Largest relative change of a field of `FORWARD` when the state's numbers move by one unit, up or down;
        infinite if it is not certain what touches."""

        if not self._oracle.is_clear({name: getattr(state, name) for name in STATE_ARRAYS}):
            return np.inf
        if not self._of_held(state)[1]:
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

    def _of_held(self, state: State) -> tuple[dict[str, float], bool]:
        """Largest relative change of each field, and whether the same geoms touch even after moves by a few units."""
        if id(state) not in self._held:
            mj, data, rng = self._oracle.mj, self._oracle.data, np.random.default_rng(0)
            self._oracle.forward(state)
            exact = collect(mj, data)
            terms = Terms.of(data, dense_jacobian(mj, data))
            largest, clear = dict.fromkeys(exact, 0.0), True
            for draw in range(2 * _DRAWS):
                state.put_into(mj, data)
                unit = Unit(self._dtype, rng, _UNITS if draw % 2 else 1.0)
                same = forward_with_rounded(mj, data, terms, unit)
                same = same and np.array_equal(data.contact.geom, exact["contact_geom"])
                clear = clear and same
                if same and draw % 2 == 0:
                    self._oracle.complete()
                    for name, values in collect(mj, data).items():
                        largest[name] = max(largest[name], relative_error(values, exact[name])[1])
            self._held[id(state)] = state, largest, clear  # holds the state, so that its id is not reused
        return self._held[id(state)][1:]

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
