"""The comparison of a benchmark with MuJoCo leaves out what rounding decides within a step."""

from __future__ import annotations

import numpy as np

from simengine import Simulation
from simengine.cli.simulations import oracle

# After half a step of the fourth order method the ball is where the plane begins, give or take a nanometre.
FALL = """<mujoco><option integrator="RK4" timestep="0.004" gravity="0 0 0"/><worldbody>
  <geom type="plane" size="1 1 1"/><body><joint type="slide" axis="0 0 1"/><geom size="0.1" mass="1"/></body>
</worldbody></mujoco>"""


def falling(heights: np.ndarray) -> oracle.Agreement:
    with Simulation(FALL, len(heights), backend="host") as sim:
        sim.set_state(qpos=heights[:, None], qvel=np.full((len(heights), 1), -1.0))
        return oracle.compare(sim, np.zeros((len(heights), 0)), len(heights))


def test_a_contact_that_rounding_decides_within_a_step_is_left_out() -> None:
    found = falling(0.102 + np.linspace(-2e-8, 2e-8, 64))
    assert found.agrees, found
    assert found.borderline > 0


def test_a_contact_that_is_certain_is_compared() -> None:
    found = falling(np.array([0.1018, 0.1019, 0.1021, 0.11, 0.0999]))
    assert found.agrees, found
    assert (found.worlds, found.borderline) == (5, 0)
