"""Accelerations of an engine beside those of MuJoCo's C, in states that the engine has reached itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np

from simengine.cli.oracle import BOUND, relative_error, spread
from simengine.cli.peers.engine import Engine
from simengine.cli.peers.problem import Problem, load

SAMPLE = 64
"""Number of worlds that are compared."""


@dataclass(frozen=True)
class Agreement:
    """Relative errors of `qacc`, each the largest difference of a world over the largest acceleration in it.

    Attributes:
        worst: largest error of a world.
        median: error of the median world.
        worlds: number of compared worlds.
        outside: number of worlds whose error exceeds the bound of the engine's precision.
        borderline: number of those in which rounding decides how many contacts or rows there are.
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
    """Compare an engine with MuJoCo in the engine's present states, without a warm start in either."""
    state, qacc = engine.state(), engine.qacc()
    chosen = spread(problem.worlds, SAMPLE)
    counts = engine.counts(chosen)
    data, bound = mujoco.MjData(problem.mj), BOUND[engine.dtype]
    errors, borderline = [], 0
    for place, world in enumerate(chosen):
        load(data, problem, state, world)
        data.ctrl = problem.controls[0, world]
        mujoco.mj_forward(problem.mj, data)
        errors.append(relative_error(qacc[world], data.qacc))
        borderline += bool(counts and errors[-1] > bound and counts[place] != (data.ncon, data.nefc))
    outside = sum(error > bound for error in errors)
    return Agreement(max(errors), float(np.median(errors)), len(chosen), outside, borderline)
