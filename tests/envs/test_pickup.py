"""PickUp: a scripted hand takes up the box and succeeds, and an idle one does not."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest

FINGERS = ("left", "right", "thumb")
PLAN = {  # targets of actuators by time [s]: down with open fingers, close, up
    "z": ((0, 1, 2, 3.5), (0, -0.19, -0.19, -0.03)),
    **dict.fromkeys(FINGERS, ((0, 0.3, 1, 1.8), (0, -0.35, -0.35, 0.55))),
    **{f"{name}_tip": ((1, 1.8), (0, 0.5)) for name in FINGERS},
}


def test_a_scripted_hand_succeeds_and_an_idle_one_does_not() -> None:
    env = gymnasium.make_vec(
        "simengine/PickUp-v0", num_envs=2, backend="host", spread=0.0, goal_heights=(0.2, 0.2), max_episode_steps=None
    )
    observation, infos = env.reset(seed=0)
    assert observation.shape == (2, sum(env.unwrapped.observation_structure.values()))
    assert not infos["success"].any()
    model = env.unwrapped.model
    names = [model.actuator(u).name for u in range(model.nu)]
    rates = np.array([{"x": 0.02, "y": 0.02, "z": 0.02, "yaw": 0.08}.get(name, 0.1) for name in names])
    target, returns = np.zeros(model.nu), np.zeros(2)
    for step in range(100):
        wanted = np.zeros(model.nu)
        for name, (times, values) in PLAN.items():
            wanted[names.index(name)] = np.interp((step + 1) * env.unwrapped.dt, times, values)
        action = np.clip((wanted - target) / rates, -1, 1)
        target += action * rates
        observation, rewards, terminations, _, infos = env.step(np.stack([action, np.zeros(model.nu)]))
        returns += rewards
        assert not terminations.any()
    assert infos["success"].tolist() == [True, False]
    assert infos["reward_lift"].tolist() == [1, 0]
    assert observation[:, -2:].tolist() == [[1, 1], [0, 0]]
    assert returns[0] > 20 * returns[1]


def test_boxes_and_goals_differ_between_worlds_and_lie_within_the_spread() -> None:
    env = gymnasium.make_vec("simengine/PickUp-v0", num_envs=8, backend="host", spread=0.1)
    env.reset(seed=1)
    state = env.unwrapped.state
    boxes, goals = np.asarray(state.worlds.qpos)[:, 10:12], np.asarray(state.memory["goal"])
    assert len(set(boxes[:, 0].tolist())) == len(set(goals[:, 2].tolist())) == 8
    assert np.abs(boxes).max() <= 0.1
    assert ((goals[:, 2] >= 0.15) & (goals[:, 2] <= 0.35)).all()


def test_a_spread_out_of_reach_is_refused() -> None:
    with pytest.raises(ValueError, match=r"spread must be between 0 and 0\.4 m"):
        gymnasium.make("simengine/PickUp-v0", backend="host", spread=1.0)
