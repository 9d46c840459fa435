"""The peer on the CPU: `mujoco.rollout`, with which MuJoCo steps a batch on several threads."""

from __future__ import annotations

from itertools import pairwise
from time import perf_counter
from typing import Self

import mujoco
import numpy as np
from mujoco.rollout import Rollout

from simengine import Model

_FULL = mujoco.mjtState.mjSTATE_FULLPHYSICS


class MujocoRollout:
    """A thread pool in which MuJoCo steps batches of one model, in float64 and with the model's options.

    Args:
        model: the model.
        threads: number of threads.
        chunk_bytes: size of the states that one call of `mujoco.rollout` may return [bytes].
    """

    name = "mujoco.rollout"

    def __init__(self, model: Model, threads: int, chunk_bytes: int = 128 * 2**20) -> None:
        self._mj = model.mj
        self._data = [mujoco.MjData(model.mj) for _ in range(threads)]
        self._pool = Rollout(nthread=threads)
        self._chunk_bytes = chunk_bytes

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._pool.close()

    def seconds(
        self, qpos: np.ndarray, qvel: np.ndarray, controls: np.ndarray, steps: int, act: np.ndarray | None = None
    ) -> float:
        """Measure the time of `steps` steps of a batch.

        Args:
            qpos: initial coordinates, (num_worlds, nq) [m, rad].
            qvel: initial velocities, (num_worlds, nv) [m/s, rad/s].
            controls: sets of controls, (sets, num_worlds, nu). Steps take them in turn.
            steps: number of steps.
            act: initial activations of actuators, (num_worlds, na); None for zeros.

        Returns:
            Time spent in `mujoco.rollout`, without the preparation of its arguments [s].

        Raises:
            FloatingPointError: MuJoCo's state is not finite, so that the time says nothing.
        """
        state = self._initial(qpos, qvel, act)
        chunk = max(1, min(steps, self._chunk_bytes // state.nbytes))
        elapsed = 0.0
        for first in range(0, steps, chunk):
            turns = np.arange(first, min(first + chunk, steps)) % len(controls)
            control = np.ascontiguousarray(controls[turns].swapaxes(0, 1))
            began = perf_counter()
            states, _ = self._pool.rollout(self._mj, self._data, state, control)
            elapsed += perf_counter() - began
            state = np.ascontiguousarray(states[:, -1])
        if not np.isfinite(state).all():
            raise FloatingPointError("MuJoCo's state went non-finite, so its time means nothing; take fewer steps")
        self._last = state
        return elapsed

    def last(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return coordinates, velocities and activations of all worlds after the last measurement."""
        ends = np.cumsum((1, self._mj.nq, self._mj.nv, self._mj.na))
        qpos, qvel, act = (self._last[:, first:end] for first, end in pairwise(ends))
        return qpos, qvel, act

    def _initial(self, qpos: np.ndarray, qvel: np.ndarray, act: np.ndarray | None) -> np.ndarray:
        data = mujoco.MjData(self._mj)
        state = np.empty((len(qpos), mujoco.mj_stateSize(self._mj, _FULL)))
        for world, row in enumerate(state):
            data.qpos, data.qvel = qpos[world], qvel[world]
            if act is not None and self._mj.na:
                data.act = act[world]
            mujoco.mj_getState(self._mj, data, row, _FULL)
        return state
