"""Some states and steps in which a model differed, to be compared again: on another model, or with another solver."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import mujoco
import numpy as np

from simengine.check.compare import forward_errors, step_errors
from simengine.check.oracle import Evaluation, Oracle
from simengine.check.states import STATE_ARRAYS, State
from simengine.check.trajectory import Trajectory
from simengine.fuzz.limits import is_sane
from simengine.model.model import Model

Place = tuple[str, int]
"""A field, and the number of the state or step in which it differed."""


@dataclass(frozen=True)
class Focus:
    """States and steps by their numbers.

    Attributes:
        states: states.
        starts: states before steps, by MuJoCo's names, with `qacc_warmstart`.
    """

    states: Mapping[int, State]
    starts: Mapping[int, Mapping[str, np.ndarray]]

    def evaluated(self, oracle: Oracle, dtype: str) -> dict[int, Evaluation]:
        """MuJoCo's results in those states that can be compared on this model, too."""
        found = {i: oracle.evaluate(state) for i, state in self.states.items()}
        return {i: e for i, e in found.items() if e is not None and is_sane(e, dtype)}

    def everywhere(self, oracle: Oracle) -> dict[int, Evaluation]:
        """MuJoCo's results in all states: contacts can be compared in any."""
        found = {}
        for i, state in self.states.items():
            oracle.forward(state)
            found[i] = Evaluation(state, oracle.fields(), oracle.touched())
        return found

    def before_steps(self, mj: mujoco.MjModel) -> Focus:
        """The states before the steps, without a warm start, as states."""
        nothing = {"qfrc_applied": np.zeros(mj.nv), "xfrc_applied": np.zeros((mj.nbody, 6))}
        starts = {i: {**nothing, **before} for i, before in self.starts.items()}
        return Focus({i: State("trajectory", *(s[name] for name in STATE_ARRAYS)) for i, s in starts.items()}, {})

    def forward_errors(
        self, model: Model, oracle: Oracle, backend: str, dtype: str, *, with_own_contacts: bool = False
    ) -> dict[Place, float]:
        """Relative errors in the states, maybe against what MuJoCo makes of the engine's own contacts."""
        evaluations = self.evaluated(oracle, dtype)
        if not evaluations:
            return {}
        numbers, theirs = list(evaluations), list(evaluations.values())
        of_fields = forward_errors(model, oracle, theirs, backend, dtype, with_own_contacts=with_own_contacts)
        return {(name, numbers[k]): error for name, errors in of_fields.items() for k, _, error in errors}

    def errors(self, model: Model, oracle: Oracle, backend: str, dtype: str) -> dict[Place, float]:
        """Relative errors of the engine on a model, of every field in every state and step that can be compared."""
        out = self.forward_errors(model, oracle, backend, dtype)
        numbers = [i for i, before in self.starts.items() if _step_is_decided(oracle, before)]
        if numbers:
            steps = _stepped(oracle, [self.starts[i] for i in numbers])
            of_fields, _ = step_errors(model, oracle, steps, backend, dtype)
            out |= {(name, numbers[k]): error for name, errors in of_fields.items() for k, _, error in errors}
        return out


def _step_is_decided(oracle: Oracle, before: Mapping[str, np.ndarray]) -> bool:
    put(oracle, before)
    return oracle.step_is_decided()


def _stepped(oracle: Oracle, starts: Sequence[Mapping[str, np.ndarray]]) -> Trajectory:
    """MuJoCo's steps from some states."""
    after: dict[str, list[np.ndarray]] = {"qpos": [], "qvel": [], "act": []}
    touched = []
    for before in starts:
        put(oracle, before)
        mujoco.mj_step(oracle.mj, oracle.data)
        touched.append(oracle.touched())
        for name, values in after.items():
            values.append(np.array(getattr(oracle.data, name)))
    before_all = {name: np.array([start[name] for start in starts]) for name in starts[0]}
    return Trajectory(before_all, {name: np.array(v) for name, v in after.items()}, tuple(touched), 0, 0)


def put(oracle: Oracle, before: Mapping[str, np.ndarray]) -> None:
    """Put a state, given by MuJoCo's names, into the oracle's data."""
    mujoco.mj_resetData(oracle.mj, oracle.data)
    for name, values in before.items():
        getattr(oracle.data, name)[:] = values
