"""One step of the host backend from each state of MuJoCo trajectories, all states as worlds of one simulation.

The error of a field in one state is max|a - b| / max(1, max|b|). A state is left out, and counted, if at any evaluation
of its step a contact or limit lies within NEAR of a margin: it then exists in one precision and not in the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import mujoco
import numpy as np
import pytest

from simengine import Simulation
from tests.models import ALL, compile_model, gymnasium_path

NEAR = 1e-6
TOLERANCE = {"float64": 1e-6, "float32": 1e-3}
STATES = {"ant": 1000, "humanoidstandup": 120, "inverted_pendulum": 200, "inverted_double_pendulum": 200}
MODELS = (
    *("ant", "half_cheetah", "hopper", "walker2d", "swimmer", "reacher"),
    *("inverted_pendulum", "inverted_double_pendulum", "humanoidstandup"),
)
LIMITS = {"ant": 500, "half_cheetah": 10, "hopper": 20, "walker2d": 100}
INPUTS = ("qpos", "qvel", "ctrl", "qacc_warmstart")


class Trajectory(NamedTuple):
    """n states, what mj_step makes of each, which of them are undecided, and what they hold."""

    before: dict[str, np.ndarray]
    after: dict[str, np.ndarray]
    undecided: np.ndarray
    coverage: Counter[str]


def compiled(name: str) -> mujoco.MjModel:
    """A model with the solver run to 1e-12."""
    known = name in ALL
    mj = compile_model(name) if known else mujoco.MjModel.from_xml_path(str(gymnasium_path(name)))
    mj.opt.tolerance = mj.opt.ls_tolerance = 1e-12
    return mj


def evaluations(mj: mujoco.MjModel, state: mujoco.MjData) -> Iterator[mujoco.MjData]:
    """The points at which one step evaluates the dynamics: the state, and for Runge-Kutta three more."""
    data = mujoco.MjData(mj)
    for field in INPUTS:
        getattr(data, field)[:] = getattr(state, field)
    mujoco.mj_forward(mj, data)
    yield data
    if mj.opt.integrator != mujoco.mjtIntegrator.mjINT_RK4:
        return
    for reach in (0.5, 0.5, 1.0):
        rate, qacc = data.qvel.copy(), data.qacc.copy()
        data.qpos[:] = state.qpos
        mujoco.mj_integratePos(mj, data.qpos, rate, reach * mj.opt.timestep)
        data.qvel[:] = state.qvel + reach * mj.opt.timestep * qacc
        mujoco.mj_forward(mj, data)
        yield data


def is_undecided(mj: mujoco.MjModel, data: mujoco.MjData) -> bool:
    """Whether a contact or limit of a state lies within NEAR of its margin; mj must list contacts 2 NEAR early."""
    distance = data.contact.dist - data.contact.includemargin
    joints = np.flatnonzero(mj.jnt_limited)
    q = data.qpos[mj.jnt_qposadr[joints]][:, None]
    limits = np.abs(q - mj.jnt_range[joints]) - mj.jnt_margin[joints][:, None]
    return bool((np.abs(distance) < NEAR).any() or (np.abs(limits) < NEAR).any())


def note(coverage: Counter[str], mj: mujoco.MjModel, data: mujoco.MjData) -> None:
    """Count contacts, limits and pair types of an evaluated state."""
    coverage["contacts"] += data.ncon
    coverage["limits"] += int((data.efc_type == mujoco.mjtConstraint.mjCNSTR_LIMIT_JOINT).sum())
    coverage["free states"] += data.nefc == 0
    for pair in np.sort(mj.geom_type[data.contact.geom.reshape(-1, 2)], axis=1):
        coverage["-".join(mujoco.mjtGeom(t).name.removeprefix("mjGEOM_").lower() for t in pair)] += 1


@cache
def trajectory(name: str) -> Trajectory:
    """States along a MuJoCo trajectory under random controls, each rounded to float32; joints jump now and then."""
    mj = compiled(name)
    early = compiled(name)
    early.geom_gap[:] += NEAR
    n, rng, data = STATES.get(name, 400), np.random.default_rng(7), mujoco.MjData(mj)
    limited = np.flatnonzero(mj.jnt_limited)
    before: dict[str, list[np.ndarray]] = {f: [] for f in INPUTS}
    after: dict[str, list[np.ndarray]] = {f: [] for f in ("qpos", "qvel")}
    undecided, coverage = np.zeros(n, dtype=bool), Counter[str]()
    for i in range(n):
        if i % 200 == 0:
            mujoco.mj_resetData(mj, data)
            data.qvel[:] = rng.normal(size=mj.nv) * 0.5
        if i % 25 == 20 and name != "hopper":  # its links collide with each other, and would sink deep
            low, high = mj.jnt_range[limited].T
            beyond = 0.1 * (high - low)
            data.qpos[mj.jnt_qposadr[limited]] = rng.uniform(low - beyond, high + beyond)
        data.ctrl[:] = rng.uniform(-1, 1, size=mj.nu)
        for field in INPUTS:
            getattr(data, field)[:] = getattr(data, field).astype(np.float32)
            before[field].append(getattr(data, field).copy())
        undecided[i] = any(is_undecided(early, point) for point in evaluations(early, data))
        mujoco.mj_step(mj, data)
        for field in after:
            after[field].append(getattr(data, field).copy())
        note(coverage, mj, data)
    coverage["undecided"] = int(undecided.sum())
    stacked = ({k: np.stack(v) for k, v in fields.items()} for fields in (before, after))
    return Trajectory(*stacked, undecided, coverage)


def relative_errors(actual: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Error of each state."""
    return np.abs(actual - expected).max(axis=1) / np.maximum(1.0, np.abs(expected).max(axis=1))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", MODELS)
def test_a_step_agrees_with_mujoco(name: str, dtype: str) -> None:
    states = trajectory(name)
    sim = Simulation(compiled(name), num_worlds=len(states.undecided), backend="host", dtype=dtype)
    sim.set_state(**states.before)
    sim.step()
    decided = ~states.undecided
    worst = {
        field: relative_errors(np.asarray(getattr(sim, field))[decided], states.after[field][decided]).max()
        for field in ("qpos", "qvel")
    }
    shown = ", ".join(f"{field} {value:.1e}" for field, value in worst.items())
    print(f"{name} {dtype}: {shown} over {dict(states.coverage)}")
    assert states.undecided.mean() < 0.02
    assert max(worst.values()) <= TOLERANCE[dtype], worst


@pytest.mark.parametrize("name", LIMITS)
def test_the_trajectories_touch_limits_and_ground(name: str) -> None:
    coverage = trajectory(name).coverage
    assert coverage["plane-capsule"] > 100, coverage
    assert coverage["limits"] >= LIMITS[name], coverage
    assert coverage["free states"] > 5, coverage
