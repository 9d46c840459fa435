"""States along MuJoCo trajectories, and the state after one step of MuJoCo from each."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import mujoco
import numpy as np

from simengine.check.oracle import Oracle, Touched
from simengine.check.search import Progress
from simengine.check.states import Sampler, in_float32, is_sane

_EPISODE = 200  # steps after which the trajectory restarts from another state
_STUCK = 5  # consecutive steps left out after which it also restarts
_HOLD = 10  # steps for which controls are constant
_BEFORE = ("qpos", "qvel", "act", "ctrl", "mocap_pos", "mocap_quat", "eq_active", "qacc_warmstart")
_AFTER = ("qpos", "qvel", "act")


class Trajectory(NamedTuple):
    """Steps of MuJoCo that can be compared, in their order.

    Attributes:
        before: qpos, qvel, act, ctrl, poses of mocap bodies, eq_active and qacc_warmstart before each step, (n, ...).
        after: qpos, qvel and act after it, (n, ...).
        touched: contacts and limits of each step's last evaluation.
        left_out: number of steps left out because rounding decides a contact or limit at an evaluation.
        by_rounding: of these, without a contact or limit that is too close to its margin.
    """

    before: dict[str, np.ndarray]
    after: dict[str, np.ndarray]
    touched: tuple[Touched, ...]
    left_out: int
    by_rounding: int

    def start(self, i: int) -> dict[str, np.ndarray]:
        """The state before a step."""
        return {name: values[i] for name, values in self.before.items()}


def follow(oracle: Oracle, sampler: Sampler, steps: int, progress: Progress | None = None) -> Trajectory:
    """Let MuJoCo step `steps` times under random controls, each time from numbers that are exact in float32.

    The trajectory restarts at intervals, and also if the simulation diverges or rests at a margin. It restarts at rest,
    by turns near the model's initial coordinates and from random ones.
    """
    mj, data = oracle.mj, oracle.data
    before: dict[str, list[np.ndarray]] = {name: [] for name in _BEFORE}
    after: dict[str, list[np.ndarray]] = {name: [] for name in _AFTER}
    touched: list[Touched] = []
    episodes = left_out = age = stuck = 0
    rounded = oracle.by_rounding
    for i in range(steps):
        if age % _EPISODE == 0 or stuck == _STUCK or not is_sane(data):
            mujoco.mj_resetData(mj, data)
            data.qpos[:] = sampler.random_qpos() if episodes % 2 else sampler.initial_qpos()
            data.mocap_pos[:], data.mocap_quat[:] = sampler.random_mocap()
            data.eq_active[:] = sampler.random_active()
            episodes, age, stuck = episodes + 1, 0, 0
        if age % _HOLD == 0:
            data.ctrl[:] = sampler.random_ctrl()
        age += 1
        for name in _BEFORE:
            getattr(data, name)[:] = in_float32(getattr(data, name))
        decided = oracle.step_is_decided()
        start = {name: np.array(getattr(data, name)) for name in _BEFORE}
        mujoco.mj_step(mj, data)
        left_out += not decided
        stuck = 0 if decided else stuck + 1
        if decided and is_sane(data):
            touched.append(oracle.touched())
            for name in _BEFORE:
                before[name].append(start[name])
            for name in _AFTER:
                after[name].append(np.array(getattr(data, name)))
        if progress:
            progress("trajectory", i + 1, steps)
    return Trajectory(_stacked(before), _stacked(after), tuple(touched), left_out, oracle.by_rounding - rounded)


def _stacked(lists: dict[str, list[np.ndarray]]) -> dict[str, np.ndarray]:
    return {name: np.array(values) for name, values in lists.items()}


def pairs_of(touched: tuple[Touched, ...]) -> Counter[str]:
    """Contacts by pair type over many states."""
    return sum((t.pairs for t in touched), Counter[str]())
