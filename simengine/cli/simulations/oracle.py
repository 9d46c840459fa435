"""A comparison with MuJoCo: both engines take a step from the same states and controls, and fields are compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import mujoco
import numpy as np

from simengine import Simulation
from simengine.cli.simulations.stepping import on_host

BOUND = {"float32": 2e-3, "float64": 1e-6}
"""Largest relative error with which the engines agree, by dtype. It exceeds rounding errors, because both solvers stop
at the model's tolerance."""


_ROUNDINGS = 16.0  # times the effect of rounding the state that rounding may have in a step, as in `simengine check`
_DRAWS = 8


@dataclass(frozen=True)
class Agreement:
    """The worst disagreement with MuJoCo over the compared worlds.

    Attributes:
        worlds: number of compared worlds.
        contacts: number of contacts in these worlds.
        borderline: number of worlds that are left out because rounding decides which contacts or rows exist, in their
            state or within the step.
        qacc: largest relative error of the acceleration in the same state. The relative error of a world is
            max|ours - theirs| / max(1, max|theirs|).
        qpos, qvel: largest relative error of the state one step later.
        bound: largest error with which the engines agree.
    """

    worlds: int
    contacts: int
    borderline: int
    qacc: float
    qpos: float
    qvel: float
    bound: float

    @property
    def agrees(self) -> bool:
        """Whether every error is within the bound and most worlds were compared."""
        return max(self.qacc, self.qpos, self.qvel) <= self.bound and self.borderline <= self.worlds

    def as_dict(self) -> dict[str, Any]:
        """Return the fields by name, and `agrees`."""
        return {**asdict(self), "agrees": self.agrees}


def relative_error(ours: np.ndarray, theirs: np.ndarray) -> float:
    """Return max|ours - theirs| / max(1, max|theirs|), or infinity if `ours` is not finite."""
    if ours.size == 0:
        return 0.0
    error = float(np.abs(ours - theirs).max()) / max(1.0, float(np.abs(theirs).max()))
    return error if np.isfinite(error) else np.inf


def spread(num_worlds: int, sample: int) -> np.ndarray:
    """Return at most `sample` indices of worlds, spread evenly over the batch, (n,) int."""
    return np.unique(np.linspace(0, num_worlds - 1, sample).astype(int))


def compare(sim: Simulation, controls: np.ndarray, sample: int) -> Agreement:
    """Step the simulation once, and compare a sample of its worlds with MuJoCo.

    Args:
        sim: the simulation. The comparison starts from its present state.
        controls: controls of the step, (num_worlds, nu).
        sample: number of worlds to compare, spread evenly over the batch.
    """
    mj = sim.model.mj
    chosen = spread(sim.num_worlds, sample)
    controls = controls.astype(sim.dtype)  # both engines get equal numbers
    # Setting the state clears the warm start; MuJoCo starts without one too.
    others = {name: on_host(sim.field(name))[chosen] for name in ("act", "mocap_pos", "mocap_quat")}
    sim.set_state(qpos=on_host(sim.qpos), qvel=on_host(sim.qvel), ctrl=controls)
    before = on_host(sim.qpos)[chosen], on_host(sim.qvel)[chosen]
    sim.forward()
    qacc = on_host(sim.qacc)[chosen]
    counts = [(sim.contacts(world).ncon, sim.constraints(world).nefc) for world in chosen]
    sim.step(ctrl=controls)
    after = on_host(sim.qpos)[chosen], on_host(sim.qvel)[chosen]

    theirs, errors = _Theirs(mj), []
    compared = contacts = 0
    for i, world in enumerate(chosen):
        state = {"qpos": before[0][i], "qvel": before[1][i], "ctrl": controls[world]}
        state |= {name: values[i] for name, values in others.items()}
        fields = theirs.evaluated(state)
        if theirs.counts != counts[i]:
            continue
        error = tuple(map(relative_error, (qacc[i], after[0][i], after[1][i]), fields))
        if max(error) > BOUND[sim.dtype] and max(error) <= _ROUNDINGS * theirs.rounding(state, fields, sim.dtype):
            continue
        compared, contacts = compared + 1, contacts + counts[i][0]
        errors.append(error)
    qacc_error, qpos_error, qvel_error = np.max(errors, axis=0) if errors else [np.inf] * 3
    return Agreement(
        worlds=compared,
        contacts=contacts,
        borderline=len(chosen) - compared,
        qacc=float(qacc_error),
        qpos=float(qpos_error),
        qvel=float(qvel_error),
        bound=BOUND[sim.dtype],
    )


class _Theirs:
    """MuJoCo's results for a state.

    Attributes:
        counts: numbers of contacts and rows in the state evaluated last.
    """

    def __init__(self, mj: mujoco.MjModel):
        self._mj, self._data = mj, mujoco.MjData(mj)
        self.counts = 0, 0

    def evaluated(self, state: Mapping[str, np.ndarray]) -> tuple[np.ndarray, ...]:
        """`qacc` in a state, and `qpos` and `qvel` one step later."""
        mj, data = self._mj, self._data
        mujoco.mj_resetData(mj, data)
        for name, values in state.items():
            getattr(data, name)[...] = values
        mujoco.mj_forward(mj, data)
        self.counts, qacc = (data.ncon, data.nefc), data.qacc.copy()
        data.qacc_warmstart = 0.0
        mujoco.mj_step(mj, data)
        return qacc, data.qpos.copy(), data.qvel.copy()

    def rounding(self, state: Mapping[str, np.ndarray], exact: Sequence[np.ndarray], dtype: str) -> float:
        """Largest relative error if the numbers of the state move by one unit in the last place, up or down."""
        rng, largest = np.random.default_rng(0), 0.0
        for _ in range(_DRAWS):
            moved = dict(state)
            for name in ("qpos", "qvel"):
                unit = np.spacing(np.abs(state[name]).astype(dtype)).astype(np.float64)
                moved[name] = state[name] + unit * rng.choice((-1.0, 1.0), size=unit.shape)
            largest = max(largest, *map(relative_error, self.evaluated(moved), exact))
        return largest
