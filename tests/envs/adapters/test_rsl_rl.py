"""The adapter to rsl_rl: its steps, and its runner."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

ANT = "simengine/Ant-v5"
PENDULUM = "simengine/InvertedPendulum-v5"
LIMIT = 10
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")]


def make(name: str = PENDULUM, num_envs: int = 4, **arguments: Any) -> Any:
    pytest.importorskip("rsl_rl")
    from simengine_envs.adapters.rsl_rl import RslRlVecEnv

    return RslRlVecEnv(name, num_envs, **{"seed": 0, "backend": "host", "max_episode_steps": LIMIT, **arguments})


def configuration() -> dict[str, Any]:
    network = {"class_name": "MLPModel", "hidden_dims": [16], "activation": "elu"}
    return {
        "num_steps_per_env": 16,
        "save_interval": 100,
        "obs_groups": {"actor": ["policy"], "critic": ["policy"]},
        "actor": {**network, "distribution_cfg": {"class_name": "GaussianDistribution", "init_std": 1.0}},
        "critic": network,
        "algorithm": {"class_name": "PPO", "num_learning_epochs": 2, "num_mini_batches": 2, "learning_rate": 1e-3},
    }


@pytest.mark.parametrize("name", [PENDULUM, ANT])
def test_runner_trains(name: str, tmp_path: Path) -> None:
    env = make(name)
    from rsl_rl.runners import OnPolicyRunner

    runner = OnPolicyRunner(env, configuration(), str(tmp_path), "cpu")
    before = [value.detach().clone() for value in runner.alg.get_policy().parameters()]
    runner.learn(2, init_at_random_ep_len=True)
    after = list(runner.alg.get_policy().parameters())
    assert all(value.isfinite().all() for value in after)
    assert any((old != new).any() for old, new in zip(before, after, strict=True))
    assert len(runner.logger.lenbuffer) > 4
    assert (tmp_path / "model_1.pt").exists()


def test_limit_is_told_from_termination() -> None:
    env = make()
    import torch

    late = early = 0
    for step in range(4 * LIMIT):
        push = torch.full((4, 1), 3.0 if step > 2 * LIMIT else 0.0)
        push[0] = 0
        observations, rewards, dones, extras = env.step(push)
        assert rewards.dtype == observations["policy"].dtype == torch.float32
        assert observations["policy"].shape == (4, 4)
        assert not (extras["time_outs"] & ~dones).any()
        assert torch.equal(env.episode_length_buf[dones], torch.zeros(int(dones.sum()), dtype=torch.int32))
        np.testing.assert_allclose(extras["log"]["step/reward_survive"], rewards.mean())
        late, early = late + int(extras["time_outs"].sum()), early + int((dones & ~extras["time_outs"]).sum())
    assert late > 4
    assert early > 4


def test_assigned_lengths_of_episodes_end_them_sooner() -> None:
    env = make()
    import torch

    lengths = torch.tensor([0, LIMIT - 1, LIMIT - 2, 3])
    env.episode_length_buf = lengths
    lengths[0] = LIMIT - 1
    assert env.episode_length_buf.tolist() == [0, LIMIT - 1, LIMIT - 2, 3]
    assert env.step(torch.zeros(4, 1))[2].tolist() == [False, True, False, False]
    assert env.step(torch.zeros(4, 1))[2].tolist() == [False, False, True, False]


def test_actions_are_clipped_to_the_action_space() -> None:
    ours, bare = make(), make(clip_actions=False)
    import torch

    big, limit = torch.full((4, 1), 50.0), torch.full((4, 1), 3.0)
    assert torch.equal(ours.step(big)[0]["policy"], bare.step(limit)[0]["policy"])
    assert float(ours.env.state.action.max()) == 3.0


def test_wrong_calls() -> None:
    with pytest.raises(ValueError, match="rsl_rl needs a limit of the length of episodes; give max_episode_steps"):
        make(max_episode_steps=None)
    env = make()
    with pytest.raises(TypeError, match="give an array of torch"):
        env.step(np.zeros((4, 1), np.float32))
    import torch

    with pytest.raises(ValueError, match=r"has shape \(3,\); give one of \(4,\)"):
        env.episode_length_buf = torch.zeros(3)
