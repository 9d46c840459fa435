"""Accelerations of an engine beside those of MuJoCo's C."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np

from simengine.check.oracle import with_margins
from simengine.check.report import LEAST_MARGIN
from simengine.cli.bench.peers.engine import Engine
from simengine.cli.bench.peers.problem import Problem, State, load
from simengine.cli.simulations.oracle import BOUND, relative_error, spread

SAMPLE = 64
"""Number of worlds that are compared."""

_JITTERS = 12  # samples by which it is found whether rounding decides a world
_ROUNDINGS = 16  # size of the differences of states, in roundings of the engine's numbers
_GEOMETRY = 2e-6  # size of the differences of the places of geoms [m], just over MuJoCo's tolerance for meshes
_CCD_TOLERANCE, _CCD_ITERATIONS = 1e-12, 500  # of searches for contacts that are as exact as MuJoCo can make them


@dataclass(frozen=True)
class Agreement:
    """Relative errors of `qacc`, each the largest difference of a world over the largest acceleration in it.

    Errors are those from MuJoCo as the model sets it, or with exact searches for contacts where that is nearer. With
    height fields, these have margins wider by 1e-9 m, without which MuJoCo reports less than the least penetration.

    Attributes:
        worst: largest error of a world in which rounding does not decide.
        median: error of the median world.
        worlds: number of compared worlds.
        outside: number of worlds whose error exceeds the bound of the engine's precision.
        borderline: number of those in which rounding decides: MuJoCo's own accelerations differ by more than the bound
            and half the error where states, sizes and axes of geoms, and vertices and normals of meshes differ by some
            roundings, and places of geoms by two micrometres.
    """

    worst: float
    median: float
    worlds: int
    outside: int
    borderline: int

    @property
    def agrees(self) -> bool:
        """Whether all worlds agree, but for a minority in which rounding decides."""
        return self.outside == self.borderline and 2 * self.borderline <= self.worlds

    def as_dict(self) -> dict[str, Any]:
        """Return the fields of a row."""
        return {
            "qacc_error": float(f"{self.worst:.3g}"),
            "qacc_error_median": float(f"{self.median:.3g}"),
            "checked_worlds": self.worlds,
            "worlds_outside": self.outside,
            "worlds_borderline": self.borderline,
            "agrees": self.agrees,
        }


def compare(engine: Engine, problem: Problem) -> Agreement:
    """Compare an engine with MuJoCo in the engine's present states, without a warm start in either.

    MuJoCo's searches for contacts end at a tolerance, which may decide where the side of a cylinder touches. Where the
    engine differs from MuJoCo, its error is therefore also that from a MuJoCo that searches on, and the smaller counts.
    """
    state, qacc = engine.state(), engine.qacc()
    bound, exact = BOUND[engine.dtype], _searching_on(problem.mj)
    jitter = _Jitter(problem, state, _ROUNDINGS * float(np.finfo(engine.dtype).eps))
    data = mujoco.MjData(problem.mj)
    errors, borderline = [], []
    for world in spread(problem.worlds, SAMPLE):
        expected = _forward(problem.mj, data, problem, state, world)
        errors.append(relative_error(qacc[world], expected))
        if errors[-1] > bound:
            searched = relative_error(qacc[world], _forward(exact, mujoco.MjData(exact), problem, state, world))
            errors[-1] = min(errors[-1], searched)
        borderline.append(errors[-1] > bound and jitter.decides(world, expected, max(bound, errors[-1] / 2)))
    decided = [error for error, either in zip(errors, borderline, strict=True) if not either]
    return Agreement(
        worst=max(decided, default=float(np.max(errors))),
        median=float(np.median(errors)),
        worlds=len(errors),
        outside=sum(error > bound for error in errors),
        borderline=sum(borderline),
    )


def _searching_on(mj: mujoco.MjModel) -> mujoco.MjModel:
    """A copy of a model whose searches for contacts end where rounding ends them, also those with height fields."""
    exact = with_margins(mj, LEAST_MARGIN) if mj.nhfield else copy.copy(mj)
    exact.opt.ccd_tolerance, exact.opt.ccd_iterations = _CCD_TOLERANCE, _CCD_ITERATIONS
    return exact


class _Jitter:
    """MuJoCo with states, geoms and meshes that differ by about as much as numbers are rounded.

    Where corners of a mesh lie in one plane but for less than a rounding, vertices and normals decide which edges and
    faces touch. Of corners of equal discs that lie on each other, axes that are orthogonal but for a rounding do.
    """

    def __init__(self, problem: Problem, state: State, size: float) -> None:
        self._problem, self._state, self._size = problem, state, size
        self._mj, self._rng = copy.copy(problem.mj), np.random.default_rng(0)
        self._mj.geom_sameframe[:] = 0  # else geoms in the frames of their bodies would stay in place
        self._data = mujoco.MjData(self._mj)

    def decides(self, world: int, expected: np.ndarray, least: float) -> bool:
        """Return whether accelerations of a world differ from those expected by more than `least`."""
        return any(relative_error(self._once(world), expected) > least for _ in range(_JITTERS))

    def _once(self, world: int) -> np.ndarray:
        original, rng = self._problem.mj, self._rng
        self._mj.geom_pos[:] = original.geom_pos + rng.uniform(-_GEOMETRY, _GEOMETRY, original.geom_pos.shape)
        self._mj.geom_quat[:] = original.geom_quat + rng.uniform(-self._size, self._size, original.geom_quat.shape)
        for name in ("geom_size", "mesh_vert", "mesh_polynormal"):
            values = getattr(original, name)
            getattr(self._mj, name)[:] = values * (1 + rng.uniform(-self._size, self._size, values.shape))
        qpos, qvel = self._state.qpos[world].copy(), self._state.qvel[world]
        mujoco.mj_integratePos(original, qpos, rng.uniform(-self._size, self._size, original.nv), 1.0)
        moved = State(
            qpos[None], (qvel * (1 + rng.uniform(-self._size, self._size, qvel.shape)))[None], self._acts(world)
        )
        return _forward(self._mj, self._data, self._problem, moved, 0, world)

    def _acts(self, world: int) -> np.ndarray:
        return self._state.act[world : world + 1]


def _forward(
    mj: mujoco.MjModel, data: mujoco.MjData, problem: Problem, state: State, row: int, world: int | None = None
) -> np.ndarray:
    """Return accelerations of MuJoCo in a row of the states, under the first controls of a world."""
    load(data, problem, state, row)
    data.ctrl = problem.controls[0, row if world is None else world]
    mujoco.mj_forward(mj, data)
    return np.array(data.qacc)
