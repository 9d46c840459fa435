"""What all engines of a comparison solve: the same model, first states and controls."""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import perf_counter

import mujoco
import numpy as np

from simengine import Model
from simengine.cli.simulations.controls import random_controls

_PROBED = 8  # worlds in which MuJoCo counts contacts and rows
_PROBE_STEPS = 100
_PROBE_SECONDS = 10.0
_ROOM = 1.5  # room for contacts and rows over the most that MuJoCo found, in engines that have limits
_UNSTABLE = (mujoco.mjtWarning.mjWARN_BADQPOS, mujoco.mjtWarning.mjWARN_BADQVEL, mujoco.mjtWarning.mjWARN_BADQACC)


@dataclass(frozen=True)
class State:
    """States of all worlds.

    Attributes:
        qpos: coordinates, (worlds, nq) [m, rad].
        qvel: velocities, (worlds, nv) [m/s, rad/s].
        act: activations of actuators, (worlds, na).
    """

    qpos: np.ndarray
    qvel: np.ndarray
    act: np.ndarray

    @property
    def finite(self) -> bool:
        """Whether all numbers are finite."""
        return all(bool(np.isfinite(part).all()) for part in (self.qpos, self.qvel, self.act))


@dataclass(frozen=True)
class Problem:
    """A model with first states and controls of its worlds.

    Attributes:
        name: name of the model.
        mj: the compiled model, which every engine gets.
        start: first states.
        controls: sets of controls, which steps take in turn, (sets, worlds, nu).
        contacts, rows: contacts and constraint rows of a world for which engines with limits make room.
    """

    name: str
    mj: mujoco.MjModel
    start: State
    controls: np.ndarray
    contacts: int = 0
    rows: int = 0

    @property
    def worlds(self) -> int:
        """Number of worlds."""
        return len(self.start.qpos)

    def from_state(self, start: State) -> Problem:
        """Return the same problem from other first states."""
        return replace(self, start=start)

    def with_room(self, contacts: int, rows: int) -> Problem:
        """Return the same problem with room for so many contacts and rows of a world."""
        return replace(self, contacts=contacts, rows=rows)


@dataclass(frozen=True)
class Counts:
    """Contacts and constraint rows that MuJoCo finds in sampled worlds: the typical and the largest number."""

    contacts: float
    rows: float
    most_contacts: int
    most_rows: int

    def room(self) -> tuple[int, int]:
        """Return contacts and rows for which an engine with limits makes room."""
        return int(_ROOM * self.most_contacts) + 16, int(_ROOM * self.most_rows) + 16


@dataclass(frozen=True)
class Named:
    """A model by name, and the state around which worlds start.

    Attributes:
        name: its name.
        mj: the compiled model.
        base: coordinates around which worlds start, (nq,).
        scatter: largest differences of coordinates and of velocities at the start [rad, m; rad/s, m/s].
    """

    name: str
    mj: mujoco.MjModel
    base: np.ndarray
    scatter: tuple[float, float] = (0.02, 0.1)

    def with_newton(self) -> str:
        """Let Newton solve where the file asks for PGS. Returns a sentence that says so, or "" if it does not ask."""
        if self.mj.opt.solver != mujoco.mjtSolver.mjSOL_PGS:
            return ""
        self.mj.opt.solver = mujoco.mjtSolver.mjSOL_NEWTON
        return f"{self.name}: the file asks for PGS, which a peer lacks, so all engines solve with Newton"


def make_problem(model: Named, worlds: int, seed: int) -> Problem:
    """Scatter worlds around the state of a model, and draw controls.

    Args:
        model: the model.
        worlds: number of worlds.
        seed: seed of states and controls.
    """
    mj, (position, velocity) = model.mj, model.scatter
    rng = np.random.default_rng(seed)
    qpos = np.tile(model.base, (worlds, 1))
    for world, step in enumerate(rng.uniform(-position, position, (worlds, mj.nv))):
        mujoco.mj_integratePos(mj, qpos[world], step, 1.0)
    qvel = rng.uniform(-velocity, velocity, (worlds, mj.nv))
    start = State(_single(qpos), _single(qvel), np.zeros((worlds, mj.na)))
    return Problem(model.name, mj, start, _single(random_controls(Model(mj), worlds, seed)))


def count(problem: Problem, steps: int) -> Counts:
    """Let MuJoCo step some worlds from the first states, and count their contacts and rows.

    Raises:
        FloatingPointError: MuJoCo itself is unstable on this problem, so that no speed means anything.
    """
    mj, data = problem.mj, mujoco.MjData(problem.mj)
    found: list[tuple[int, int]] = []
    began = perf_counter()
    for world in np.unique(np.linspace(0, problem.worlds - 1, _PROBED).astype(int)):
        load(data, problem, problem.start, int(world))
        for step in range(min(steps, _PROBE_STEPS)):
            data.ctrl = problem.controls[step % len(problem.controls), world]
            mujoco.mj_step(mj, data)
            found.append((data.ncon, data.nefc))
            if perf_counter() - began > _PROBE_SECONDS:
                break
        if any(data.warning[kind].number for kind in _UNSTABLE):
            raise FloatingPointError(f"MuJoCo itself is unstable on {problem.name!r}; compare on another start")
    contacts, rows = np.array(found).T
    return Counts(float(np.median(contacts)), float(np.median(rows)), int(contacts.max()), int(rows.max()))


def load(data: mujoco.MjData, problem: Problem, state: State, world: int) -> None:
    """Set MuJoCo's data to the state of a world, without a warm start."""
    mujoco.mj_resetData(problem.mj, data)
    data.qpos, data.qvel = state.qpos[world], state.qvel[world]
    if problem.mj.na:
        data.act = state.act[world]


def _single(values: np.ndarray) -> np.ndarray:
    """Round to numbers that float32 holds, so that engines of either precision start from the same ones."""
    return values.astype(np.float32).astype(np.float64)
