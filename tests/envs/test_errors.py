"""Wrong calls raise an error that names the mistake in one sentence."""

from __future__ import annotations

import sys
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.error import ResetNeeded

from simengine_envs import PureEnv, Task, make_pure


def single(**arguments: Any) -> gymnasium.Env:
    return gymnasium.make("simengine/Ant-v5", **{"backend": "host", **arguments}).unwrapped


def vector(num_envs: int = 2, **arguments: Any) -> gymnasium.vector.VectorEnv:
    return gymnasium.make_vec("simengine/Ant-v5", num_envs=num_envs, **{"backend": "host", **arguments})


@pytest.mark.parametrize("shape", [(7,), (1, 8), ()])
def test_action_of_the_wrong_shape(shape: tuple[int, ...]) -> None:
    env = single()
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"Ant has shape .*; give one of shape \(8,\)"):
        env.step(np.zeros(shape))


@pytest.mark.parametrize("shape", [(8,), (3, 8), (2, 7)])
def test_actions_of_the_wrong_shape(shape: tuple[int, ...]) -> None:
    env = vector()
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"Ant has shape .*; give one of shape \(2, 8\)"):
        env.step(np.zeros(shape))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_action_that_is_not_finite(value: float) -> None:
    env = single()
    env.reset(seed=0)
    before = env.state_vector()
    action = np.zeros(8)
    action[3] = value
    with pytest.raises(ValueError, match=r"Ant is (nan|inf) at index \[3\]"):
        env.step(action)
    np.testing.assert_array_equal(env.state_vector(), before)


def test_action_of_one_world_that_is_not_finite() -> None:
    env = vector()
    env.reset(seed=0)
    actions = np.zeros((2, 8))
    actions[1, 2] = np.nan
    with pytest.raises(ValueError, match=r"nan at index \[1, 2\]"):
        env.step(actions)


@pytest.mark.parametrize("actions", [[["left"] * 8] * 2, np.zeros((2, 8), bool), np.zeros((2, 8), complex)])
def test_actions_that_are_no_real_numbers(actions: Any) -> None:
    env = vector()
    env.reset(seed=0)
    with pytest.raises(TypeError, match=r"Ant has type .*; give real numbers"):
        env.step(actions)


def test_an_action_on_the_device_that_is_not_finite_is_an_error_soon_after() -> None:
    env: Any = gymnasium.make_vec("simengine/Ant-v5", num_envs=3, backend="host", array="jax")
    env.reset(seed=0)
    action = jnp.zeros((3, 8), jnp.float32)
    observations, _, terminated, *_ = env.step(action.at[1, 2].set(jnp.nan))
    assert terminated.tolist() == [False, True, False]
    assert np.isfinite(observations).all()
    jax.block_until_ready(env.unwrapped.state)
    with pytest.raises(ValueError, match=r"Ant was not finite in world 1, and in 1 of 3 worlds; their episodes ended"):
        env.step(action)
    assert np.isfinite(env.step(action)[0]).all()


def test_a_program_tells_which_actions_were_not_finite() -> None:
    env = make_pure("simengine/InvertedPendulum-v5", backend="host")
    state, _ = env.reset(0, 2)
    actions = jnp.zeros((3, 2, 1)).at[0, 1].set(jnp.inf).at[1].set(jnp.nan)
    _, result = jax.jit(lambda s, a: jax.lax.scan(env.step, s, a))(state, actions)
    assert result.bad_action.tolist() == [
        [False, True],
        [True, False],
        [False, False],
    ]  # world 1 restarts


def test_a_weight_for_an_unknown_term_is_refused_when_the_environment_is_made() -> None:
    with pytest.raises(ValueError, match="name 'energi', which is no reward term.*did you mean 'energy'"):
        gymnasium.make_vec("simengine/QuadrupedFlat-v0", num_envs=2, backend="host", weights={"energi": 1.0})


def test_action_of_a_restarting_world_is_not_looked_at() -> None:
    env = vector(max_episode_steps=1)
    env.reset(seed=0)
    assert env.step(np.zeros((2, 8)))[3].all()
    observations, rewards, *_ = env.step(np.full((2, 8), np.nan))
    assert np.isfinite(observations).all()
    assert not rewards.any()


@pytest.mark.parametrize("make", [single, vector])
def test_step_before_reset(make: Any) -> None:
    env = make()
    with pytest.raises(ResetNeeded, match="call reset"):
        env.step(np.zeros(env.action_space.shape))


def test_step_after_the_end_with_autoreset_disabled() -> None:
    env = vector(autoreset_mode="Disabled", max_episode_steps=1)
    env.reset(seed=0)
    env.step(np.zeros((2, 8)))
    env.reset(options={"reset_mask": np.array([True, False])})
    with pytest.raises(ResetNeeded, match="episode of world 1 has ended"):
        env.step(np.zeros((2, 8)))


@pytest.mark.parametrize("make", [single, vector])
@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"backend": "abacus"}, ValueError, "unknown backend 'abacus'"),
        ({"dtype": "float16"}, ValueError, "unknown dtype 'float16'"),
        ({"xml_file": "no_such_model.xml"}, FileNotFoundError, "no model file at"),
        ({"main_body": "wing"}, ValueError, "no body 'wing'"),
        ({"main_body": 99}, ValueError, "no body 99"),
        ({"frame_skip": 0}, ValueError, "frame_skip must be at least 1"),
        ({"healthy_z_range": (1.0, 0.2)}, ValueError, "healthy_z_range must be"),
        ({"reset_noise_scale": -1.0}, ValueError, "reset_noise_scale must not be negative"),
        ({"leg_count": 6}, TypeError, "leg_count"),
        ({"dtype": "float23"}, ValueError, "unknown dtype 'float23'.*did you mean 'float32'"),
        ({"frame_skip": "2"}, TypeError, "Ant: frame_skip must be a whole number, not '2'"),
        ({"weights": [1, 2]}, TypeError, "Ant: weights must be a dictionary of numbers"),
        ({"weights": {"ctrl": "much"}}, ValueError, "Ant: the weight of 'ctrl' is 'much'; give a finite number"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_wrong_argument(make: Any, arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        make(**arguments)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_envs": 0}, "num_envs must be at least 1"),
        ({"array": "trch"}, "array is 'trch'.*did you mean 'torch'"),
        ({"render_mode": "rgb_aray"}, "'rgb_aray' is unknown.*did you mean 'rgb_array'"),
        ({"max_episode_steps": 0}, "max_episode_steps must be positive"),
        ({"autoreset_mode": "SamStep"}, "autoreset_mode is 'SamStep'.*did you mean 'SameStep'"),
        ({"render_mode": "human"}, "has no window"),
        ({"render_mode": "hologram"}, "'hologram' is unknown"),
    ],
)
def test_wrong_argument_of_the_vector_environment(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        vector(**arguments)


@pytest.mark.parametrize(
    ("array", "command"), [("torch", "pip install torch"), ("cupy", "pip install 'simengine[cuda13]'")]
)
def test_a_missing_library_of_arrays_is_named_with_what_installs_it(
    array: str, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, array, None)
    with pytest.raises(ImportError, match=f"^array='{array}' needs .* cannot be imported .*") as caught:
        vector(array=array)
    assert f"install it with: {command}" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("number", [2.5, "2"])
def test_number_of_worlds_that_is_no_whole_number(number: Any) -> None:
    with pytest.raises(TypeError, match="num_envs must be a whole number, not"):
        vector(number)


def test_actions_in_lists_of_several_lengths() -> None:
    env = vector()
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"Ant is no array; give one of shape \(2, 8\)"):
        env.step([[0] * 8, [0] * 7])


@pytest.mark.parametrize("shape", [(3, 8), (2, 7)])
def test_actions_of_a_program_of_the_wrong_shape(shape: tuple[int, int]) -> None:
    env = make_pure("simengine/Ant-v5", backend="host")
    state, _ = env.reset(0, 2)
    with pytest.raises(ValueError, match=r"the action given to Ant has shape .*; give one of shape \(2, 8\)"):
        env.step(state, jnp.zeros(shape))


def test_parameters_of_the_wrong_shape() -> None:
    env: Any = vector().unwrapped
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"body_mass has shape \(3,\); give \(14,\)"):
        env.set_params(body_mass=np.ones(3))


class Wrong(Task):
    """A task one of whose functions returns what it must not."""

    xml_file = "cartpole"
    function: str = ""

    def start(self, model: Any, draw: Any, last: Any) -> Any:
        return None if self.function == "start" else {}

    def observation(self, now: Any, draw: Any) -> Any:
        return now.qpos

    def rewards(self, before: Any, now: Any) -> Any:
        return now.qpos[:, 0] if self.function == "rewards" else {"up": now.qpos[:, 0]}

    def remember(self, before: Any, now: Any, draw: Any) -> Any:
        return 1 if self.function == "remember" else {}

    def terminated(self, before: Any, now: Any) -> Any:
        return now.qpos[:, 0] > 9

    def info(self, now: Any) -> Any:
        return [] if self.function == "info" else {}


@pytest.mark.parametrize(
    ("function", "found"), [("start", "None"), ("rewards", "an array"), ("remember", "1"), ("info", r"\[\]")]
)
def test_a_function_of_a_task_that_must_give_values_by_name(function: str, found: str) -> None:
    message = f"{function} of task Wrong returns {found}; return a dictionary of arrays by name"
    env = PureEnv(Wrong(function=function), "jax")

    def run() -> Any:
        return env.step(env.reset(0, 2)[0], jnp.zeros((2, 1)))

    with pytest.raises(TypeError, match=message):
        jax.eval_shape(run)


@pytest.mark.parametrize("seed", [-1, "a"])
def test_wrong_seed(seed: Any) -> None:
    with pytest.raises(ValueError, match="the seed is .*; give a number that is not negative"):
        vector().reset(seed=seed)


@pytest.mark.parametrize(
    ("mask", "error", "message"),
    [
        ([True, False], TypeError, "NumPy array of bool, not a list"),
        (np.array([1, 0]), TypeError, "NumPy array of bool, not an array of int64"),
        (np.array([True]), ValueError, r"shape \(1,\)"),
        (np.array([False, False]), ValueError, "no true entry"),
    ],
)
def test_wrong_reset_mask(mask: Any, error: type[Exception], message: str) -> None:
    env = vector()
    with pytest.raises(error, match=message):
        env.reset(options={"reset_mask": mask})


def test_wrong_number_of_seeds() -> None:
    with pytest.raises(ValueError, match="3 entries for 2 environments"):
        vector().reset(seed=[1, 2, 3])


def test_picture_without_a_render_mode() -> None:
    env = single()
    env.reset(seed=0)
    with pytest.raises(ValueError, match="has no render_mode"):
        env.render()


def test_world_that_blows_up_is_terminated_and_leaves_the_others_alone() -> None:
    limits = {"healthy_z_range": (-1e9, 1e9), "terminate_when_unhealthy": False, "max_episode_steps": None}
    calm, wild = vector(3, **limits), vector(3, **limits)
    for env in (calm, wild):
        env.reset(seed=0)
    worlds = wild.state.worlds
    wild.state = wild.state._replace(worlds=worlds._replace(qvel=worlds.qvel.at[1, 3:6].set(1e30)))
    for step in range(3):
        actions = np.full((3, 8), 0.1)
        expected, actual = calm.step(actions), wild.step(actions)
        for part in range(4):
            np.testing.assert_array_equal(actual[part][[0, 2]], expected[part][[0, 2]])
        assert np.isfinite(actual[1]).all()
        # next-step autoreset: it ends, starts again, and goes on
        assert actual[2].tolist() == [False, step == 0, False]
    assert not expected[2].any()
