"""Random robots are valid, differ from each other, have the intended symmetries, and use only supported features."""

from __future__ import annotations

from itertools import pairwise

import mujoco
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simengine import Simulation, load_model
from simengine.zoo import Robot, random_robot

seeds = st.integers(0, 2**32 - 1)


@settings(max_examples=60, deadline=None)
@given(seeds)
def test_a_robot_stands_just_above_the_floor_and_stays_finite(seed: int) -> None:
    """Standing: nothing touches in the reference pose, and something does once it has sunk by two clearances."""
    mj = load_model(random_robot(seed)).mj
    data = mujoco.MjData(mj)
    mujoco.mj_forward(mj, data)
    assert data.ncon == 0
    data.qpos[2] -= 0.02
    mujoco.mj_forward(mj, data)
    assert data.ncon > 0
    assert (data.contact.dist > -0.011).all()
    assert mj.nu == mj.njnt - 1
    rng = np.random.default_rng(0)
    for _ in range(100):
        data.ctrl[:] = rng.uniform(-1, 1, mj.nu)
        mujoco.mj_step(mj, data)
    assert not data.warning.number.any()


def test_the_seed_decides() -> None:
    texts = [random_robot(seed) for seed in range(50)]
    assert len(set(texts)) == 50
    assert texts == [random_robot(seed) for seed in range(50)]
    shapes = {(m.nv, m.nu) for m in map(load_model, texts)}
    assert len(shapes) > 8


@given(seeds, st.integers(1, 7), st.integers(1, 4))
@settings(max_examples=40, deadline=None)
def test_limbs_and_segments_are_as_many_as_asked(seed: int, limbs: int, segments: int) -> None:
    robot = Robot.random(np.random.default_rng(seed), limbs, segments)
    assert sum(1 + limb.mirrored for limb in robot.limbs) == limbs
    mj = mujoco.MjModel.from_xml_string(robot.mjcf())
    assert mj.nbody == 2 + limbs * segments
    assert mj.nu == robot.num_actuators


def test_mirrored_limbs_move_alike() -> None:
    """Under equal controls a robot of mirrored pairs stays symmetric: it keeps to its plane."""
    drawn = (Robot.random(np.random.default_rng(seed)) for seed in range(99))
    robot = next(r for r in drawn if all(limb.mirrored for limb in r.limbs))
    mj = mujoco.MjModel.from_xml_string(robot.mjcf())
    data = mujoco.MjData(mj)
    for step in range(100):
        for u in range(mj.nu):
            name = mj.actuator(u).name.replace("_mirror", "")
            data.ctrl[u] = np.sin(0.1 * step + sum(map(ord, name)))
        mujoco.mj_step(mj, data)
        # as long as rounding has not grown: legs on the floor are unstable
        assert abs(data.qpos[1]) < 1e-6, f"step {step}"


@given(seeds)
@settings(max_examples=20, deadline=None)
def test_mutants_are_robots_and_differ(seed: int) -> None:
    rng = np.random.default_rng(seed)
    line = [Robot.random(rng)]
    for _ in range(5):
        line.append(line[-1].mutated(rng))
        load_model(line[-1].mjcf())
    assert all(a != b for a, b in pairwise(line))


def test_bad_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match="at least one limb"):
        random_robot(0, limbs=0)


def test_a_population_steps_as_one_batch() -> None:
    models = [load_model(random_robot(seed)) for seed in range(6)]
    sim = Simulation([(model, 3) for model in models], backend="host")
    alone = [Simulation(model, 3, backend="host") for model in models]
    rng = np.random.default_rng(1)
    for group, other in zip(sim.groups, alone, strict=True):
        ctrl = rng.uniform(-1, 1, (3, group.model.nu))
        group.set_state(ctrl=ctrl)
        other.set_state(ctrl=ctrl)
        other.step(40)
    sim.step(40)
    for group, other in zip(sim.groups, alone, strict=True):
        assert group.qpos.tobytes() == other.qpos.tobytes()
