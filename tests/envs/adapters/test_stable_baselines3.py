"""The adapter to Stable-Baselines3 against its own vector environment over single environments, and its algorithms."""

from __future__ import annotations

import sys
from typing import Any

import gymnasium
import numpy as np
import pytest

PENDULUM = "simengine/InvertedPendulum-v5"
LIMIT = 12
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")]


def make(num_envs: int = 3, name: str = PENDULUM, **arguments: Any) -> Any:
    pytest.importorskip("stable_baselines3")
    from simengine_envs.adapters.stable_baselines3 import StableBaselinesVecEnv

    options = {"backend": "host", "max_episode_steps": LIMIT, **arguments}
    return StableBaselinesVecEnv(name, num_envs, **options)


def test_steps_are_those_of_dummy_vec_env() -> None:
    ours = make(seed=4)
    from stable_baselines3.common.monitor import Monitor
    from stable_baselines3.common.vec_env import DummyVecEnv

    options = {"backend": "host", "max_episode_steps": LIMIT}
    theirs = DummyVecEnv([lambda: Monitor(gymnasium.make(PENDULUM, **options))] * 3)
    theirs.seed(4)
    np.testing.assert_array_equal(ours.reset(), theirs.reset())
    assert ours.reset_infos == theirs.reset_infos
    rng, late, early = np.random.default_rng(0), 0, 0
    for step in range(60):
        actions = rng.uniform(-0.5, 0.5, (3, 1)).astype(np.float32) * (step % 3)
        actual, expected = ours.step(actions), theirs.step(actions)
        for mine, reference in zip(actual[:3], expected[:3], strict=True):
            np.testing.assert_array_equal(mine, reference)
        for mine, reference in zip(actual[3], expected[3], strict=True):
            assert mine.keys() == reference.keys()
            assert mine["TimeLimit.truncated"] == reference["TimeLimit.truncated"]
            assert mine["reward_survive"] == reference["reward_survive"]
            late += mine["TimeLimit.truncated"]
            if "episode" in reference:
                np.testing.assert_array_equal(mine["terminal_observation"], reference["terminal_observation"])
                assert [mine["episode"][key] for key in "rl"] == [reference["episode"][key] for key in "rl"]
                assert mine["episode"]["t"] >= 0
                early += not mine["TimeLimit.truncated"]
    assert late > 3
    assert early > 3


def test_infos_of_ended_episodes_only() -> None:
    env = make(step_infos=False)
    env.reset()
    for _ in range(LIMIT):
        _, _, ended, infos = env.step(np.zeros((3, 1), np.float32))
        assert [("reward_survive" in info, "episode" in info) for info in infos] == [(end, end) for end in ended]
        assert all("TimeLimit.truncated" in info for info in infos)


@pytest.mark.parametrize("algorithm", ["PPO", "SAC"])
def test_algorithm_trains_and_evaluates(algorithm: str) -> None:
    env = make(num_envs=4, seed=0)
    import stable_baselines3
    from stable_baselines3.common.evaluation import evaluate_policy

    options = {"n_steps": 32, "batch_size": 64} if algorithm == "PPO" else {"learning_starts": 40, "train_freq": 4}
    model = getattr(stable_baselines3, algorithm)("MlpPolicy", env, seed=0, device="cpu", **options)
    before = [value.detach().clone() for value in model.policy.parameters()]
    model.learn(256)
    assert model.num_timesteps >= 256
    assert all(value.isfinite().all() for value in model.policy.parameters())
    assert any((old != new).any() for old, new in zip(before, model.policy.parameters(), strict=True))
    assert len(model.ep_info_buffer) > 5
    assert all(1 <= episode["l"] <= LIMIT for episode in model.ep_info_buffer)
    mean, _ = evaluate_policy(model, env, n_eval_episodes=4)
    assert 1 <= mean <= LIMIT


def test_attributes_and_methods_of_worlds() -> None:
    env = make()
    assert env.get_attr("dt") == [env.env.dt] * 3
    assert env.has_attr("dt")
    assert not env.has_attr("weight")
    heavy = 3 * env.env.model.body_mass
    env.env_method("set_params", indices=[1], body_mass=heavy)
    env.seed(0)
    env.reset()
    env.env.runner.place(np.zeros((3, 2)), np.zeros((3, 2)))
    observation, *_ = env.step(np.ones((3, 1), np.float32))
    np.testing.assert_array_equal(observation[0], observation[2])
    assert abs(observation[1, 2]) < abs(observation[0, 2])
    with pytest.raises(AttributeError, match=r"no method 'jump' of their own"):
        env.env_method("jump")
    with pytest.raises(ValueError, match="all worlds share the attribute 'render_mode'"):
        env.set_attr("render_mode", None, indices=0)


def test_wrong_calls() -> None:
    env = make()
    with pytest.raises(ValueError, match=r"has shape \(3, 2\); give one of shape \(3, 1\)"):
        env.step(np.zeros((3, 2)))
    with pytest.raises(ValueError, match="is nan at index"):
        env.step(np.full((3, 1), np.nan))
    with pytest.raises(ValueError, match=r"no environment 'simengine/InvertedPendulun-v5'.*InvertedPendulum"):
        make(name="simengine/InvertedPendulun-v5")
    wrong = gymnasium.make_vec(PENDULUM, num_envs=2, backend="host")
    from simengine_envs.adapters.stable_baselines3 import StableBaselinesVecEnv

    with pytest.raises(ValueError, match=r"array='numpy' and autoreset_mode=NEXT_STEP; make it with array='jax'"):
        StableBaselinesVecEnv(wrong)
    env.set_options({"start": 1})
    with pytest.raises(ValueError, match="take no options at a reset"):
        env.reset()


@pytest.mark.parametrize(
    ("module", "library", "extra"),
    [("stable_baselines3", "stable_baselines3", "sb3"), ("brax", "brax", "brax"), ("rsl_rl", "rsl_rl", "rsl-rl")],
)
def test_missing_library_is_named_with_its_extra(
    module: str, library: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import importlib

    for name in [name for name in sys.modules if name == library or name.startswith(f"{library}.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.delitem(sys.modules, f"simengine_envs.adapters.{module}", raising=False)
    with pytest.raises(ImportError, match=rf"pip install 'simengine\[{extra}\]'"):
        importlib.import_module(f"simengine_envs.adapters.{module}")
