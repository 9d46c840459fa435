"""Random controls, `mujoco.rollout` as a peer, and the comparison with MuJoCo."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
import pytest
from mujoco.rollout import Rollout

from simengine import Simulation, available_backends, load_model
from simengine.cli.simulations import oracle, rollout
from simengine.cli.simulations.controls import random_controls

MOTORS = """<mujoco>
<worldbody><body>
  <joint name='a' type='hinge' axis='0 1 0'/><joint name='b' type='slide' axis='1 0 0'/><geom size='.1'/>
</body></worldbody>
<actuator><motor joint='a' ctrllimited='true' ctrlrange='2 5'/><motor joint='b'/></actuator>
</mujoco>"""


def test_controls_fill_each_range_and_follow_the_seed() -> None:
    model = load_model(MOTORS)
    controls = random_controls(model, 500, seed=3)
    assert controls.shape == (10, 500, 2)
    for column, (low, high) in enumerate([(2, 5), (-1, 1)]):
        values = controls[..., column]
        assert low <= values.min() < low + 0.02
        assert high - 0.02 < values.max() <= high
    assert np.array_equal(controls, random_controls(model, 500, seed=3))
    assert not np.array_equal(controls, random_controls(model, 500, seed=4))


@pytest.mark.parametrize("chunk_bytes", [1, 2**27])
def test_rollout_plays_the_controls_in_turn(chunk_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is timed is what MuJoCo does when stepped by hand; chunks of any size join up."""
    model = load_model("half_cheetah")
    controls = random_controls(model, 3, seed=0, sets=4)
    qpos, qvel = np.tile(model.mj.qpos0, (3, 1)), np.zeros((3, model.nv))
    seen: list[np.ndarray] = []

    class Seen(Rollout):
        def rollout(self, *arguments: Any) -> tuple[np.ndarray, np.ndarray]:
            states, sensors = super().rollout(*arguments)
            seen.append(states[:, -1])
            return states, sensors

    monkeypatch.setattr(rollout, "Rollout", Seen)
    with rollout.MujocoRollout(model, threads=2, chunk_bytes=chunk_bytes) as peer:
        assert peer.seconds(qpos, qvel, controls, steps=10) > 0
    data = mujoco.MjData(model.mj)
    for world in range(3):
        mujoco.mj_resetData(model.mj, data)
        for i in range(10):
            data.ctrl = controls[i % 4, world]
            mujoco.mj_step(model.mj, data)
        assert len(seen) == (10 if chunk_bytes == 1 else 1)
        assert seen[-1][world, 1 : 1 + model.nq] == pytest.approx(data.qpos, abs=1e-6)


@pytest.mark.skipif(bool(available_backends()["host"]), reason="needs a C++ compiler")
def test_compare_finds_agreement_and_its_absence() -> None:
    model = load_model("half_cheetah")
    sim = Simulation(model, num_worlds=8, dtype="float64", backend="host")
    controls = random_controls(model, 8, seed=0)
    for i in range(60):
        sim.step(ctrl=controls[i % 10])
    agreement = oracle.compare(sim, controls[0], sample=5)
    assert agreement.agrees
    assert (agreement.worlds, agreement.borderline) == (5, 0)
    assert agreement.contacts > 0
    model.mj.opt.gravity[2] *= 1.01  # the oracle's model only: the engine's table is made
    assert not oracle.compare(sim, controls[0], sample=5).agrees


def test_error_is_relative_and_never_hides_nan() -> None:
    assert oracle.relative_error(np.array([1.0, 3.0]), np.array([1.0, 4.0])) == pytest.approx(0.25)
    assert oracle.relative_error(np.array([0.1]), np.array([0.2])) == pytest.approx(0.1)
    assert oracle.relative_error(np.array([np.nan, 0.0]), np.zeros(2)) == np.inf
    assert oracle.relative_error(np.zeros(0), np.zeros(0)) == 0.0
