"""Tasks as pure functions: results do not depend on the kind of arrays, nor on how steps are called."""

from __future__ import annotations

from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simengine_envs import EnvState, PureEnv, StepResult
from simengine_envs.options import task_class
from simengine_envs.registration import REGISTRATIONS

STEPS, LIMIT = 12, 5


def make(item: Any, **arguments: Any) -> PureEnv:
    """A task in float32, whose episodes are so short that they start anew within the steps of a test."""
    return PureEnv(task_class(item.task)(), "host", "float32", LIMIT, **arguments)


def roll(env: PureEnv, num_envs: int, actions: np.ndarray) -> StepResult:
    """Results of steps with actions (steps, at least num_envs, action size), stacked."""

    def step(state: EnvState, action: jax.Array) -> tuple[EnvState, StepResult]:
        return env.step(state, action)

    state, _ = env.reset(3, num_envs)
    result: StepResult = jax.jit(lambda s, a: jax.lax.scan(step, s, a))(state, actions[:, :num_envs])[1]
    return jax.device_get(result)


def random_actions(env: PureEnv, num_envs: int) -> np.ndarray:
    low, high = env.action_range()
    return np.random.default_rng(0).uniform(low, high, (STEPS, num_envs, len(low))).astype(np.float32)


@pytest.mark.parametrize("mode", ["NextStep", "SameStep", "Disabled"])
def test_arrays_of_jax_have_the_numbers_of_arrays_of_numpy(mode: str) -> None:
    options = {"num_envs": 3, "backend": "host", "max_episode_steps": LIMIT, "autoreset_mode": mode}
    ours, host = (gymnasium.make_vec("simengine/Hopper-v5", array=kind, **options) for kind in ("jax", "numpy"))
    np.testing.assert_array_equal(ours.reset(seed=1)[0], host.reset(seed=1)[0])
    for step in range(LIMIT if mode == "Disabled" else 3 * LIMIT):
        action = np.random.default_rng(step).uniform(-1, 1, (3, 3)).astype(np.float32)
        actual, expected = ours.step(jnp.asarray(action)), host.step(action)
        for part in range(4):
            assert isinstance(actual[part], jax.Array)
            np.testing.assert_array_equal(actual[part], expected[part])
        running = ~np.asarray(actual[4]["_episode"])
        for name in ("x_position", "x_velocity", "reward_ctrl"):
            told = running & expected[4].get(f"_{name}", np.zeros(3, bool))
            if told.any():
                np.testing.assert_array_equal(np.asarray(actual[4][name])[told], expected[4][name][told])
        assert (np.asarray(actual[4]["episode"]["l"])[~running] == LIMIT).all()


def test_a_program_of_many_steps_gives_what_single_steps_give() -> None:
    item = next(item for item in REGISTRATIONS if item.id == "Reacher-v5")
    with jax.enable_x64(False):
        env = make(item, autoreset_mode="SameStep")
        actions = random_actions(env, 4)
        rolled = roll(env, 4, actions)
        state, _ = env.reset(np.arange(3, 7))
        step = jax.jit(env.step)
        for index, action in enumerate(actions):
            state, result = step(state, action)
            np.testing.assert_array_equal(result.observation, rolled.observation[index])
            np.testing.assert_array_equal(result.reward, rolled.reward[index])
