"""The states and steps in which a model is compared: drawn once, and evaluated by MuJoCo once, for all precisions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import mujoco
import numpy as np

from simengine.check.oracle import Evaluation, Oracle
from simengine.check.search import find_states
from simengine.check.softened import can_soften
from simengine.check.states import Sampler
from simengine.check.trajectory import Trajectory, follow
from simengine.fuzz.limits import is_invertible, is_sane
from simengine.model.model import Model
from simengine.model.numbers import fits

_TRIES = 2  # for each pair type and limit that the states miss
_LEAST_STEPS, _STATES_A_STEP = 4, 8


class Drawn(NamedTuple):
    """What is compared in one precision.

    Attributes:
        oracle: MuJoCo on the model, for this precision.
        evaluations: states, and MuJoCo's results for them.
        steps: MuJoCo's steps.
        left_out: number of states and steps that are not among these.
    """

    oracle: Oracle
    evaluations: list[Evaluation]
    steps: Trajectory
    left_out: int


def draw(model: Model, dtypes: Sequence[str], states: int, seed: int) -> dict[str, Drawn]:
    """Draw states, and follow a trajectory.

    What rounding decides in the finest precision is drawn in none; from the others, what it decides there is left out.

    Args:
        model: the model.
        dtypes: "float32", "float64" or both.
        states: states that are drawn, before the search for pair types and limits that they miss; and eight times the
            steps.
        seed: of the states.

    Returns:
        What is compared, by precision.
    """
    oracles = {dtype: Oracle(model.mj, dtype) for dtype in sorted(dtypes, reverse=True)}  # float64 first
    finest, sampler = next(iter(oracles.values())), Sampler(model.mj, seed)
    found = find_states(model, finest, sampler, states, _TRIES)
    steps = follow(finest, sampler, max(_LEAST_STEPS, states // _STATES_A_STEP))
    return {
        dtype: _part(model, oracles[dtype], dtype, found.evaluations, found.left_out, steps, finest) for dtype in dtypes
    }


def _part(
    model: Model,
    oracle: Oracle,
    dtype: str,
    found: Sequence[Evaluation],
    left_out: int,
    steps: Trajectory,
    finest: Oracle,
) -> Drawn:
    if oracle is not finest:
        chosen = [evaluation for evaluation in found if oracle.chooses(evaluation.state)]
        left_out, found = left_out + len(found) - len(chosen), chosen
        steps = _decided(oracle, steps)
    soft = dtype == "float32" and can_soften(model)
    if soft:  # those that touch with such edges have forces that are not compared
        chosen = [evaluation for evaluation in (oracle.evaluate(e.state) for e in found) if evaluation is not None]
        left_out, found = left_out + len(found) - len(chosen), chosen
    possible = fits(model.table.arrays, dtype)
    sane = [evaluation for evaluation in found if possible and is_sane(evaluation, dtype)]
    calm = bool(sane) and not soft and (dtype == "float64" or len(sane) == len(found))
    calm &= all(np.isfinite(values).all() for values in steps.before.values())
    steps = _those(steps, _invertible(oracle, dtype, steps) if calm else [])
    return Drawn(oracle, sane, steps, left_out + len(found) - len(sane) + steps.left_out)


def _invertible(oracle: Oracle, dtype: str, steps: Trajectory) -> list[int]:
    """The steps that start where the inertia matrix can be inverted."""
    mj, data, kept, inertia = oracle.mj, oracle.data, [], np.zeros((oracle.mj.nv, oracle.mj.nv))
    for i in range(len(steps.touched)):
        mujoco.mj_resetData(mj, data)
        data.qpos[:] = steps.before["qpos"][i]
        mujoco.mj_fwdPosition(mj, data)
        mujoco.mj_fullM(mj, data, inertia)
        if is_invertible(inertia, dtype):
            kept.append(i)
    return kept


def _decided(oracle: Oracle, steps: Trajectory) -> Trajectory:
    """The steps in which rounding in the oracle's precision decides nothing."""
    kept = []
    for i in range(len(steps.touched)):
        mujoco.mj_resetData(oracle.mj, oracle.data)
        for name, values in steps.before.items():
            getattr(oracle.data, name)[:] = values[i]
        if oracle.step_is_decided():
            kept.append(i)
    return _those(steps, kept)


def _those(steps: Trajectory, kept: Sequence[int]) -> Trajectory:
    """Some of the steps; the others are left out."""
    before = {name: values[list(kept)] for name, values in steps.before.items()}
    after = {name: values[list(kept)] for name, values in steps.after.items()}
    left_out = steps.left_out + len(steps.touched) - len(kept)
    return Trajectory(before, after, tuple(steps.touched[i] for i in kept), left_out, steps.by_rounding)
