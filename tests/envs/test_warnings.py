"""Environments count worlds that blow up, by the stage that found the number."""

from __future__ import annotations

from typing import Any

import gymnasium
import jax.numpy as jnp
import numpy as np
import pytest

from simengine import Simulation

LIMITS: dict[str, Any] = {"healthy_z_range": (-1e12, 1e12), "terminate_when_unhealthy": False, "backend": "host"}
NONE = {"input": 0, "acceleration": 0, "solve": 0, "integrate": 0}


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
@pytest.mark.parametrize("array", ["numpy", "jax"])
def test_worlds_of_a_vector_environment_are_counted_once_each_by_stage(array: str, mode: str) -> None:
    env: Any = gymnasium.make_vec("simengine/Ant-v5", num_envs=3, array=array, autoreset_mode=mode, **LIMITS)
    env.reset(seed=0)
    assert env.warnings() == NONE
    actions = (np if array == "numpy" else jnp).zeros((3, 8))
    for times in (1, 2):
        worlds = env.state.worlds
        env.state = env.state._replace(worlds=worlds._replace(qvel=worlds.qvel.at[times, 3].set(2e10)))
        assert np.asarray(env.step(actions)[2]).tolist() == [world == times for world in range(3)]
        for _ in range(2):  # a frozen world starts again
            env.step(actions)
        assert env.warnings() == NONE | {"input": times}
    env.close()


def test_a_single_environment_and_a_simulation_count_alike() -> None:
    env: Any = gymnasium.make("simengine/Ant-v5", **LIMITS).unwrapped
    env.reset(seed=0)
    sim = Simulation(env.model, 1, backend="host", on_nonfinite="freeze")
    qpos, qvel = np.asarray(sim.qpos[0], np.float64).copy(), np.zeros(14)
    qvel[3] = 9.9e9  # its centrifugal accelerations are beyond 1e10
    env.set_state(qpos, qvel)
    sim.set_state(qpos=qpos, qvel=qvel)
    assert env.step(np.zeros(8))[2]
    sim.step()
    assert env.warnings() == sim.warnings() != NONE
    env.close()
