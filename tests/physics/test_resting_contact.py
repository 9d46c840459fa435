"""Contacts that must stick or slide: a box on a slope, and a stack of boxes."""

from __future__ import annotations

import numpy as np
import pytest

from simengine import Simulation

MU = 0.6
SLOPE = """
<mujoco model="slope">
  <option timestep="0.002" gravity="{along} 0 {across}" cone="{cone}" impratio="10"/>
  <worldbody>
    <geom type="plane" size="50 50 1" friction="0.6"/>
    <body pos="0 0 0.1"><freejoint/><geom type="box" size="0.2 0.2 0.1" friction="0.6"/></body>
  </worldbody>
</mujoco>
"""

STACK = """
<mujoco model="stack">
  <option timestep="0.002" integrator="{integrator}"/>
  <default><geom type="box" size="0.1 0.1 0.05" density="300" friction="0.8"/></default>
  <worldbody>
    <geom type="plane" size="5 5 1"/>
    <body pos="0 0 0.05"><freejoint/><geom/></body>
    <body pos="0.02 0 0.15"><freejoint/><geom/></body>
    <body pos="-0.01 0.02 0.25" euler="0 0 20"><freejoint/><geom/></body>
    <body pos="0 0 0.35"><freejoint/><geom/></body>
  </worldbody>
</mujoco>
"""


def on_slope(degrees: float, cone: str, dtype: str) -> tuple[float, float]:
    """Distance slid [m] and speed [m/s] after one second on a slope, by gravity turned against a level floor."""
    angle = np.deg2rad(degrees)
    mjcf = SLOPE.format(along=9.81 * np.sin(angle), across=-9.81 * np.cos(angle), cone=cone)
    sim = Simulation(mjcf, 1, backend="host", dtype=dtype)
    sim.step(500)
    return float(sim.qpos[0, 0]), float(sim.qvel[0, 0])


@pytest.mark.parametrize("cone", ["pyramidal"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_box_sticks_below_the_friction_angle_and_slides_above(cone: str, dtype: str) -> None:
    limit = np.rad2deg(np.arctan(MU))
    distance, speed = on_slope(limit - 4, cone, dtype)
    assert 0 <= distance < 0.02  # soft friction creeps
    assert abs(speed) < 0.02
    distance, speed = on_slope(limit + 8, cone, dtype)
    angle = np.deg2rad(limit + 8)
    expected = 9.81 * (np.sin(angle) - MU * np.cos(angle))
    assert speed == pytest.approx(expected, rel=0.1)
    assert distance == pytest.approx(expected / 2, rel=0.1)


@pytest.mark.parametrize(("integrator", "dtype"), [("Euler", "float64"), ("Euler", "float32"), ("RK4", "float32")])
def test_a_stack_of_boxes_stands_for_ten_seconds(integrator: str, dtype: str) -> None:
    sim = Simulation(STACK.format(integrator=integrator), 1, backend="host", dtype=dtype)
    start = np.array(sim.qpos[0]).reshape(-1, 7)
    sim.step(5000)
    end, velocity = np.array(sim.qpos[0]).reshape(-1, 7), np.array(sim.qvel[0])
    assert np.abs(end[:, :3] - start[:, :3]).max() < 5e-3
    assert np.abs((end[:, 3:] * start[:, 3:]).sum(axis=1)).min() > np.cos(np.deg2rad(1) / 2)
    assert np.abs(velocity).max() < 2e-3
